"""Which machines to rent? One file per algorithm, one signature: (workload, budget or rate) -> machines, counts and placement."""

# name -> module; the module holds a function of the same name. One line per algorithm.
SCHEDULERS: dict[str, str] = {
    "headrace": "headrace.provision.headrace",
    "optimal": "headrace.provision.optimal",
    "botm": "headrace.provision.botm",
    "vm-greedy": "headrace.provision.vm_greedy",
    "uniform": "headrace.provision.uniform",
}
