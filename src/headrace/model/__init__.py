"""What is planned: topology, cluster, catalog, profile, traffic, problem, plan."""
