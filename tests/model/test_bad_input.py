"""Every wrong file is refused with its name, line and key, and the key that was likely meant."""

from __future__ import annotations

import random
import resource
import string
import time
from pathlib import Path

import pytest

from headrace.errors import InvalidInput
from headrace.model.document import Component
from headrace.model.read import read

from .conftest import Refusal, Write

GROUPINGS = "shuffle, load-aware, none, custom, fields, global, all, direct, local-or-shuffle"
HEAD = "format: headrace/1\n"
APP = """\
topology:
  components:
    say: {spout: true, rate: 20}
    split: {tasks: 2, inputs: {say: shuffle}}
"""
MACHINES = """\
cluster:
  nodes:
    node1: {type: big, cpu: 100}
    node2: {type: small, cpu: 50}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format: headrace/1\na: [1,\nb: 2", "app.yaml:4: did not find expected ',' or ']'"),
        (
            '{"format": "headrace/1",\n "report": {"a" 1}',
            "app.yaml:2: did not find expected ',' or '}'",
        ),
        (
            "format: headrace/1\na: \x07",
            (
                "app.yaml: is not YAML: unacceptable character #x0007: control characters are not "
                "allowed"
            ),
        ),
        (
            "format: headrace/1\na: !!python/name:os.system",
            "app.yaml:2: could not determine a constructor for the tag",
        ),
        ("format: headrace/1\na: 2001-99-99", "app.yaml: is not YAML: month must be in 1..12"),
        (
            "- format",
            (
                "app.yaml: holds a list; a headrace/1 file is a mapping that starts with `format: "
                "headrace/1`"
            ),
        ),
        ("format", "app.yaml: holds text; a headrace/1 file"),
        ("# format", "app.yaml: holds nothing; a headrace/1 file"),
        (
            "format: headrace/2",
            "app.yaml: has `format: headrace/2`; this version reads `format: headrace/1`",
        ),
        (
            "topologies: [{name: the format}]",
            "app.yaml: has no `format`; this version reads `format: headrace/1`",
        ),
        (
            '{"format": "headrace/1", "seed": ' + "1" * 5000 + "}",
            "app.yaml: is not JSON: Exceeds the limit",
        ),
    ],
)
def test_what_is_not_a_headrace_file_is_refused(refusal: Refusal, text: str, message: str):
    assert refusal(text).startswith(message)


def test_a_key_that_stands_twice_is_refused(refusal: Refusal):
    twice = HEAD + "topology:\n  components:\n    a: {spout: true}\n    a: {tasks: 2}\n"
    assert refusal(twice) == "app.yaml:5: the key `a` stands twice in one mapping"
    assert (
        refusal('{"format": "headrace/1", "seed": 1, "seed": 2}')
        == "app.yaml: the key `seed` stands twice in one mapping"
    )
    assert refusal(HEAD + "cluster: {nodes: {[a]: {}}}") == "app.yaml:2: a key must be a plain name"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # unknown keys
        ("topology:", "topolgy:",
         "app.yaml:2: topolgy: unknown key `topolgy` (did you mean `topology`?)"),
        ("rate: 20", "raet: 20",
         "app.yaml:4: topology.components.say.raet: unknown key `raet` (did you mean `rate`?)"),
        ("type: big", "typ: big",
         "app.yaml:8: cluster.nodes.node1.typ: unknown key `typ` (did you mean `type`?)"),
        ("type: big", "xyzzy: big", "app.yaml:8: cluster.nodes.node1.xyzzy: unknown key `xyzzy`"),
        (
            "say: shuffle",
            "say: [{stream: s, gruping: all}]",
            ("app.yaml:5: topology.components.split.inputs.say[0].gruping: unknown key `gruping` "
             "(did you mean `grouping`?)"),
        ),
        (
            "say: shuffle",
            "say: {gruping: all}",
            ("app.yaml:5: topology.components.split.inputs.say.gruping: unknown key `gruping` (did "
             "you mean `grouping`?)"),
        ),
        # wrong values
        (
            "say: shuffle",
            "say: shufle",
            (f"app.yaml:5: topology.components.split.inputs.say: 'shufle' is not one "
             f"of {GROUPINGS} (did you mean `shuffle`?)"),
        ),
        ("rate: 20", "rate: -20",
         "app.yaml:4: topology.components.say.rate: is -20; it must be at least 0"),
        ("rate: 20", "rate: .inf",
         "app.yaml:4: topology.components.say.rate: is inf; a finite number is needed"),
        ("rate: 20", "cpu: -1",
         "app.yaml:4: topology.components.say.cpu: is -1; it must be at least 0"),
        ("rate: 20", "memory_mb: -1",
         "app.yaml:4: topology.components.say.memory_mb: is -1; it must be at least 0"),
        ("rate: 20", "rate: fast",
         "app.yaml:4: topology.components.say.rate: is 'fast'; a number is needed"),
        ("rate: 20", "rate: true",
         "app.yaml:4: topology.components.say.rate: is true; a number is needed"),
        ("rate: 20", "rate: [20]",
         "app.yaml:4: topology.components.say.rate: is a list; a number is needed"),
        ("rate: 20", "state_mb: {}",
         "app.yaml:4: topology.components.say.state_mb: is a mapping; a number is needed"),
        ("spout: true", "spout: 7",
         "app.yaml:4: topology.components.say.spout: is 7; true or false is needed"),
        ("tasks: 2", "tasks: 0",
         "app.yaml:5: topology.components.split.tasks: is 0; it must be at least 1"),
        ("tasks: 2", "tasks: 2.5",
         "app.yaml:5: topology.components.split.tasks: is 2.5; a whole number is needed"),
        ("tasks: 2", f"tasks: {10**30}",
         (f"app.yaml:5: topology.components.split.tasks: is {10**30}; it must be at most "
          f"100,000,000")),
        ("cpu: 100", "cpu: -5",
         "app.yaml:8: cluster.nodes.node1.cpu: is -5; it must be at least 0"),
        ("cpu: 100", "slots: -1",
         "app.yaml:8: cluster.nodes.node1.slots: is -1; it must be at least 0"),
        ("cpu: 100", "memory_mb: -1",
         "app.yaml:8: cluster.nodes.node1.memory_mb: is -1; it must be at least 0"),
        ("cpu: 100", "bandwidth_mbps: 0",
         "app.yaml:8: cluster.nodes.node1.bandwidth_mbps: is 0; it must be more than 0"),
        ("{type: big, cpu: 100}", "7",
         "app.yaml:8: cluster.nodes.node1: is 7; a mapping is needed"),
        # names
        (
            "say: shuffle",
            "sya: shuffle",
            ("app.yaml:5: topology.components.split.inputs.sya: `topology` has no component `sya` "
             "(did you mean `say`?)"),
        ),
        (
            "rate: 20",
            "inputs: {split: all}",
            ("app.yaml:4: topology.components.say.inputs: a spout has no inputs; take away `spout: "
             "true` or the inputs"),
        ),
        ("tasks: 2", "rate: 2",
         ("app.yaml:5: topology.components.split.rate: only a spout has a rate; a bolt's follows "
          "from its inputs")),
        ("tasks: 2", "nodes: [node3]",
         ("app.yaml:5: topology.components.split.nodes: the cluster has no node `node3` (did you "
          "mean `node")),
        ("tasks: 2", 'nodes: ["n{3..1}"]',
         "app.yaml:5: topology.components.split.nodes: n{3..1}: a range counts up"),
        ("node2:", "node{1..2}:",
         "app.yaml:9: cluster.nodes.node{1..2}: the node `node1` is given twice"),
        ("node2:", "n{5..2}:",
         ("app.yaml:9: cluster.nodes.n{5..2}: n{5..2}: a range counts up, from the smaller number "
          "to the larger")),
        ("node2:", "n{1..9999}{1..9999}:",
         ("app.yaml:9: cluster.nodes.n{1..9999}{1..9999}: n{1..9999}{1..9999}: a range of more "
          "than")),
        ("cpu: 100", "taken: {slots: [4]}",
         ("app.yaml:8: cluster.nodes.node1.taken: slot 4 of `node1` is taken, but it has 4 slots, "
          "counted from 0")),
        # what is missing
        ("    node1: {type: big, cpu: 100}\n    node2: {type: small, cpu: 50}\n", "    {}\n",
         "app.yaml:7: cluster.nodes: the cluster has no nodes"),
        ("  nodes:\n", "  ndoes:\n", "app.yaml:6: cluster.nodes: `nodes` is needed and missing"),
        ("say: {spout: true, rate: 20}\n    split: {tasks: 2, inputs: {say: shuffle}}", "{}",
         "app.yaml:2: topology: the topology `topology`"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_topology_or_cluster_is_named_with_its_place(
    refusal: Refusal, old: str, new: str, message: str
):
    good = HEAD + APP + MACHINES
    assert good.count(old) == 1
    assert refusal(good.replace(old, new)).startswith(message)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("profile: {split: {big: {cpu_ms: 1}}}",
         "profile.split: has `big` but not machine type `small`, which the cluster has; add it,"),
        ("profile: {splt: {big: {cpu_ms: 1}}}",
         "profile.splt: there is no component `splt` (did you mean `split`?)"),
        ("profile: {split: {big: {cpu_ms: -1}}}",
         "profile.split.big.cpu_ms: is -1; it must be at least 0"),
        ("streams: [{from: say, to: split, tuples_per_s: -1}]",
         "streams[0].tuples_per_s: is -1; it must be at least 0"),
        ("streams: [{to: split}]", "streams[0].from: `from` is needed and missing"),
        ("streams: [{source: say, from: say, to: split}]",
         "streams[0].source: unknown key `source`"),
        ("streams: [{from: say, to: splt}]",
         "streams[0].to: there is no component `splt` (did you mean `split`?)"),
        ("streams: [{from: split, to: say}]",
         "streams[0]: `say` does not list `split` in its inputs"),
        ("streams: [{from: say, to: split, stream: s}]",
         "streams[0]: no stream `s` from `say` to `split`; there are `default`"),
        ("streams: [{from: say, to: split, shares: [1]}]",
         "streams[0].shares: has 1 shares; `split` has 2 tasks"),
        ("streams: [{from: say, to: split, shares: [0, 0]}]",
         "streams[0].shares: every share is 0; at least one must be more"),
        ("traffic: [[say.1, split.3, 5]]",
         "traffic[0][1]: there is no task `split.3`; `split` has tasks 1 to 2"),
        ("traffic: [[say.1, split.0, 5]]",
         "traffic[0][1]: there is no task `split.0`; `split` has tasks 1 to 2"),
        ("traffic: [[say.1, splt.1, 5]]",
         ("traffic[0][1]: there is no task `splt.1`; tasks are called component.N (did you mean "
          "`split`?)")),
        ("traffic: [[say.1, split.², 5]]",
         "traffic[0][1]: there is no task `split.²`; tasks are called component.N"),
        ("traffic: [[say, split.1, 5]]",
         ("traffic[0][0]: there is no task `say`; tasks are called component.N (did you mean "
          "`say`?)")),
        ("traffic: [[say.1, split.1]]",
         ("traffic[0]: a row is [from task, to task, tuples/s] or [from task, to task, tuples/s, "
          "bytes/s]")),
        ("traffic: [[say.1, split.1, 1, 2, 3]]",
         "traffic[0]: a row is [from task, to task, tuples/s] or"),
        ("traffic: [7]", "traffic[0]: a row is [from task, to task, tuples/s] or"),
        ("traffic: [[say.1, split.1, -5]]", "traffic[0][2]: is -5; it must be at least 0"),
        ("inventory: {nod2: {cpu: 1}}",
         "inventory.nod2: the cluster has no node `nod2` (did you mean `node2`?)"),
        ("history: {split: [[0, 1]]}", "history.split: there is no spout `split`"),
        ("history: {sya: [[0, 1]]}", "history.sya: there is no spout `sya` (did you mean `say`?)"),
        ("catalog: {big: {cpu: 100}}", "catalog.big.price: `price` is needed and missing"),
        ("tasks: {a: {}}",
         "topology.components: a file gives either components or bare `tasks`, not both"),
        ("topologies: []", "topologies: give either `topology` or `topologies`, not both"),
        ("plan: {assignment: {say.1: {node: node1}}}",
         "plan: the plan is for another topology or cluster: it leaves out 2 of 3 tasks"),
        ("plan: {assignment: {said.1: {node: node1}}}",
         "plan: the plan is for another topology or cluster: it names the component `said`"),
        ("plan: {assignment: {say.2: {node: node1}}}",
         "plan: the plan is for another topology or cluster: it places say.2; `say` has tasks 1"),
        ("plan: {assignment: {say: {node: node1}}}",
         "plan: the plan is for another topology or cluster: it places `say`; tasks are called"),
        ("plan: {assignment: {say.1: {node: n7}}}",
         "plan: the plan is for another topology or cluster: it names the node `n7`, which the"),
        ("plan: {placement: {split: [[node1, 0, 1, 3]]}}",
         "plan: the plan is for another topology or cluster: it places split.1 to split.3"),
        ("plan: {placement: {split: [[node1, 0, 1, 2], [node1, 0, 2, 2]]}}",
         "plan: the plan places tasks between split.2 and split.2 twice"),
        ("plan: {assignment: {say.1: {node: node1}, say.01: {node: node1}}}",
         "plan: the plan places say.01 twice"),
        ("plan: {placement: {split: [[node1, -1, 1, 2]]}}",
         "plan.placement.split[0][1]: is -1; it must be at least 0"),
        ("plan: {machines: many}", "plan.machines: is 'many'; a mapping is needed"),
        ("options: {optimal: {phi: [1]}}",
         "options.optimal.phi: is a list; an option is a number, text, true or false"),
        ("options: {optimal: 7}", "options.optimal: is 7; a mapping is needed"),
        ("made_from: 7", "made_from: is 7; a mapping is needed"),
    ],
)  # fmt: skip
def test_a_mistake_in_another_section_is_named_with_its_place(
    refusal: Refusal, section: str, message: str
):
    said = refusal(HEAD + APP + MACHINES + section).split("\n")[0]
    line = 3 if message.startswith("topology") else 10
    assert said.startswith(f"app.yaml:{line}: {message}")


def test_a_bad_number_in_a_row_of_traffic_is_one_mistake(refusal: Refusal):
    assert refusal(HEAD + APP + MACHINES + "traffic: [[say.1, split.1, -5]]").count("\n") == 0


def test_every_mistake_is_told_up_to_ten(refusal: Refusal):
    rows = "traffic:\n" + "- [say.1, split.1, -1]\n" * 30
    said = refusal(HEAD + APP + MACHINES + rows).split("\n")
    assert said[0].startswith("app.yaml:11: traffic[0][2]")
    assert said[9].startswith("app.yaml:20: traffic[9][2]")
    assert said[10:] == ["and 20 more"]


def test_a_plan_whose_sections_are_none_is_refused(refusal: Refusal):
    assert (
        refusal("plan: {tasks: {a: 1}}\nmade_from: 7")
        == "app.yaml:3: made_from: is 7; a mapping is needed"
    )


def test_a_long_value_is_cut_in_the_message(refusal: Refusal):
    assert len(refusal(HEAD + APP.replace("rate: 20", f"rate: {'x' * 10_000}") + MACHINES)) < 200


def test_the_same_section_in_two_files_is_refused(refusal: Refusal):
    said = refusal(HEAD + APP, HEAD + "\n" + APP + MACHINES)
    assert said == "1-app.yaml:3: topology: this section also stands in app.yaml; give it once"


def test_two_topologies_of_one_name_are_refused(refusal: Refusal):
    text = "topologies:\n- {name: a, components: {x: {}}}\n- {name: a, components: {x: {}}}\n"
    assert (
        refusal(text + MACHINES)
        == "app.yaml:4: topologies[1].name: the topology `a` is given twice; names must differ"
    )


def test_traffic_between_topologies_is_refused(refusal: Refusal):
    text = (
        "topologies: [{name: a, components: {x: {}}}, {name: b, components: {x: {}}}]\n"
        "traffic: [[a/x.1, b/x.1, 3]]\n"
    )
    assert refusal(text + MACHINES).startswith(
        "app.yaml:3: traffic[0]: the two tasks are of different topologies"
    )


def test_a_bare_task_graph_names_its_unknown_tasks(refusal: Refusal):
    said = refusal("tasks: {read: {}, write: {}}\ntraffic: [[read, wirte, 1]]\n" + MACHINES)
    assert said == "app.yaml:3: traffic[0][1]: there is no task `wirte` (did you mean `write`?)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (APP, "no cluster: give a file with `cluster`"),
        (MACHINES, "no topology: give a file with `topology`, `topologies` or `tasks`"),
        (
            "topologies: []\n" + MACHINES,
            "no topology: give a file with `topology`, `topologies` or `tasks`",
        ),
    ],
)
def test_what_is_missing_altogether_is_named(refusal: Refusal, text: str, message: str):
    assert refusal(text) == message


def test_a_profile_needs_types_on_the_machines(refusal: Refusal):
    said = refusal(
        HEAD + APP + MACHINES.replace("type: big, ", "") + "profile: {split: {small: {cpu_ms: 1}}}"
    )
    assert "profile.split: has `small` but the cluster has nodes without `type`" in said


def test_a_file_that_is_missing_or_a_folder_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"gone\.yaml: no such file"):
        read([tmp_path / "gone.yaml"])
    with pytest.raises(InvalidInput, match=r"is a folder; a headrace/1 file is YAML or JSON"):
        read([tmp_path])


def test_text_in_another_encoding_is_refused(tmp_path: Path):
    (tmp_path / "x.yaml").write_bytes("format: headrace/1 # größer".encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"x\.yaml: is not UTF-8 text \(byte 23\)"):
        read([tmp_path / "x.yaml"])


MEGABYTES = 20


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ("bytes", "is not text; a headrace/1 file is YAML or JSON"),
        ("latin", r"is not UTF-8 text \(byte \d+\); a headrace/1 file is YAML or JSON"),
        ("lines", "has no `format`; this version reads `format: headrace/1`"),
        ("brackets", "has no `format`; this version reads `format: headrace/1`"),
    ],
)
def test_large_noise_is_refused_at_once(tmp_path: Path, noise: str, message: str):
    chance = random.Random(0)
    block = {
        "bytes": chance.randbytes(1_000_000),
        "latin": bytes(chance.choices(range(1, 256), k=1_000_000)),
        "lines": "".join(chance.choices(string.ascii_letters + " :-{}[]\n", k=1_000_000)).encode(),
        "brackets": b"[{" * 500_000,
    }[noise]
    (tmp_path / "noise").write_bytes(block * MEGABYTES)
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(InvalidInput, match=message):
        read([tmp_path / "noise"])
    assert time.process_time() - started < 2
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 10 * MEGABYTES


def test_a_large_broken_json_names_its_line_at_once(write: Write):
    name = write('{"format": "headrace/1", "traffic": [\n' + '["a.1", "b.1", 1.0],\n' * 300_000)
    started = time.process_time()
    with pytest.raises(InvalidInput, match=r"app\.yaml:300002: is not JSON: Expecting value"):
        read([name])
    assert time.process_time() - started < 5


def test_a_long_key_is_cut_in_messages(refusal: Refusal):
    said = refusal(f"cluster: {{nodes: {{n: {{}}}}, {'k' * 900}: 1}}\n")
    assert len(said) < 400
    assert "unknown key `" in said
    assert "…" in said


def test_numbers_that_no_machine_has_are_refused_and_next_to_nothing_is_nothing(refusal: Refusal):
    wrong = "topology: {components: {a: {spout: true, rate: 9223372036854775808}}}\n"
    assert "rate: is 9223372036854775808; it must be at most 1e+15" in refusal(wrong)
    assert Component(cpu=1e-320).cpu == 0
    assert Component(cpu=1e-12).cpu == 1e-12


def test_more_tasks_than_fit_into_memory_are_refused(refusal: Refusal):
    text = (
        "topology: {components: {a: {spout: true, tasks: 30000000}}}\ncluster: {nodes: {n: {}}}\n"
    )
    assert "30,000,000 tasks, 30,000,000 of them of `a`; at most 20,000,000" in refusal(text)
