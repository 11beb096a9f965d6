"""Which machines should be rented? One file per algorithm.

All have one signature: `(workload: Workload, request: Request, *, options) -> Provisioned`. The
request holds a budget, a rate or both; the answer has machines, counts and places.
"""

# name -> module; the module holds a function of the same name. One line per algorithm.
SCHEDULERS: dict[str, str] = {
    "headrace": "headrace.provision.headrace",
    "optimal": "headrace.provision.optimal",
    "botm": "headrace.provision.botm",
    "vm-greedy": "headrace.provision.vm_greedy",
    "vm-greedy-even": "headrace.provision.vm_greedy_even",
    "uniform": "headrace.provision.uniform",
}
