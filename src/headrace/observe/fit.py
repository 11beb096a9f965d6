"""What a tuple costs: a line through CPU over rate, which outliers do not bend.

There is one for each component and machine type. The first line joins the medians of the lower and
the upper third of the rates (Tukey's resistant line). Windows far from it are cut, and the rest are
fitted by least squares, weighted because the scatter of CPU grows with CPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

Figures = Row | Mapping[str, Any]  # named figures, from Spark or not
GROUP = ("topology", "component", "machine_type")
CUT = 3.5  # scales of the residuals, each 1.48 x their median
REFITS = 2
# 95th over 5th percentile of the rates below which slope and intercept cannot be told apart.
NARROW = 1.3
POOR_R2 = 0.7
FEWEST = 10  # windows


@dataclass(frozen=True, slots=True)
class Fit:
    """What a task of a component costs on a machine type: rate x cpu_ms / 10 + cpu_fixed points."""

    topology: str
    component: str
    machine_type: str | None
    cpu_ms: float
    cpu_fixed: float
    r2: float | None
    windows: int
    flag: str | None
    spout: bool = False


def load_points(windows: DataFrame, window_s: int) -> DataFrame:
    """One row per task and window: its input rate (a spout: output), and the CPU points it used."""
    # A component that never takes anything in is a spout, whose rate is what it emits.
    spouts = windows.groupBy("topology", "component").agg((F.sum("tuples_in") == 0).alias("spout"))
    rate = F.when(F.col("spout"), F.col("tuples_out")).otherwise(F.col("tuples_in")) / window_s
    points = F.col("cpu_ms") / (10.0 * window_s)
    joined = windows.join(F.broadcast(spouts), ["topology", "component"], how="inner")
    return joined.select(*GROUP, "spout", rate.alias("rate"), points.alias("points"))


def fits(points: DataFrame) -> list[Fit]:
    """A fit per component and machine type, in the order of their names."""
    spark = points.sparkSession
    lines = resistant_lines(points)
    scales = (
        with_lines(spark, points, lines)
        .groupBy(*GROUP)
        .agg(middle(F.abs("residual")).alias("scale"))
    )
    scale = {name(row): max(1.4826 * (row["scale"] or 0.0), 1e-6) for row in scales.collect()}
    final: Sequence[Row] = ()
    for _ in range(REFITS):
        lines = {key: (*line[:3], scale[key]) for key, line in lines.items()}
        kept = with_lines(spark, points, lines).where(F.abs("residual") <= CUT * F.col("scale"))
        final = kept.groupBy(*GROUP).agg(*sums()).collect()
        lines = {name(row): (*weighted_line(row), lines[name(row)][2], 0.0) for row in final}
    return sorted(
        (fit(row) for row in final), key=lambda f: (f.topology, f.component, f.machine_type or "")
    )


# Group -> slope, intercept, smallest prediction, scale.
Lines = dict[tuple[str, str, str | None], tuple[float, float, float, float]]


def resistant_lines(points: DataFrame) -> Lines:
    """The first line of every group, and its least sensible prediction: a tenth of its median."""
    thirds = points.groupBy(*GROUP).agg(
        F.percentile_approx("rate", [1 / 3, 2 / 3], 10_000).alias("thirds")
    )

    cut = join_groups(points, thirds)
    low, high = F.col("rate") <= F.col("thirds")[0], F.col("rate") >= F.col("thirds")[1]
    ends = cut.groupBy(*GROUP).agg(
        middle(F.when(low, F.col("rate"))).alias("low_rate"),
        middle(F.when(low, F.col("points"))).alias("low_points"),
        middle(F.when(high, F.col("rate"))).alias("high_rate"),
        middle(F.when(high, F.col("points"))).alias("high_points"),
        middle(F.col("points")).alias("points"),
    )
    return {name(row): first_line(row) for row in ends.collect()}


def first_line(row: Figures) -> tuple[float, float, float, float]:
    width = row["high_rate"] - row["low_rate"]
    slope = max(0.0, (row["high_points"] - row["low_points"]) / width) if width > 0 else 0.0
    return slope, row["low_points"] - slope * row["low_rate"], max(row["points"] / 10, 1e-9), 0.0


def with_lines(spark: SparkSession, points: DataFrame, lines: Lines) -> DataFrame:
    """Points with their predicted CPU and the residual as a share of it."""
    texts = [pa.field(name, pa.string()) for name in GROUP]
    numbers = [pa.field(name, pa.float64()) for name in ("slope", "intercept", "least", "scale")]
    rows = [(*key, *line) for key, line in lines.items()]
    columns = [
        pa.array([row[i] for row in rows], field.type) for i, field in enumerate((*texts, *numbers))
    ]
    known = spark.createDataFrame(pa.table(columns, schema=pa.schema([*texts, *numbers])))
    with_line = join_groups(points, known)
    predicted = F.greatest(F.col("slope") * F.col("rate") + F.col("intercept"), F.col("least"))
    residual = (F.col("points") - F.col("slope") * F.col("rate") - F.col("intercept")) / F.col(
        "predicted"
    )
    return with_line.withColumn("predicted", predicted).withColumn("residual", residual)


def join_groups(points: DataFrame, known: DataFrame) -> DataFrame:
    """Points with what is known of their group; the machine type may be null on both sides."""
    other = known.select(
        *(F.col(c).alias(f"their_{c}") if c in GROUP else F.col(c) for c in known.columns)
    )
    same = [F.col(c).eqNullSafe(F.col(f"their_{c}")) for c in GROUP]
    return points.join(F.broadcast(other), same, how="inner").drop(*(f"their_{c}" for c in GROUP))


def sums() -> list[Column]:
    """What a weighted line and its quality are computed from."""
    weight, x, y = 1 / F.col("predicted") ** 2, F.col("rate"), F.col("points")
    return [
        F.sum(weight).alias("w"),
        F.sum(weight * x).alias("wx"),
        F.sum(weight * y).alias("wy"),
        F.sum(weight * x * x).alias("wxx"),
        F.sum(weight * x * y).alias("wxy"),
        F.sum(x).alias("x"),
        F.sum(y).alias("y"),
        F.regr_r2(y, x).alias("r2"),
        F.count("*").alias("windows"),
        F.bool_or("spout").alias("spout"),
        F.percentile_approx("rate", [0.05, 0.95], 1000).alias("range"),
    ]


def weighted_line(row: Figures) -> tuple[float, float]:
    """Slope and intercept by weighted least squares; neither is ever negative."""
    spread = row["w"] * row["wxx"] - row["wx"] ** 2
    if spread <= 1e-12 * row["w"] * row["wxx"]:
        return (row["wxy"] / row["wxx"], 0.0) if row["wxx"] > 0 else (0.0, row["wy"] / row["w"])
    slope = (row["w"] * row["wxy"] - row["wx"] * row["wy"]) / spread
    intercept = (row["wy"] - slope * row["wx"]) / row["w"]
    if slope < 0:
        return 0.0, row["wy"] / row["w"]
    return (row["wxy"] / row["wxx"], 0.0) if intercept < 0 else (slope, intercept)


def fit(row: Figures) -> Fit:
    """The last line of a group, and what is doubtful about it."""
    low, high = row["range"]
    narrow = high < NARROW * low or high == 0
    # Where the rate hardly changes, what a task takes at rest cannot be told from what its tuples
    # take: all goes to the tuples.
    slope, intercept = (row["y"] / row["x"], 0.0) if narrow and row["x"] > 0 else weighted_line(row)
    doubts = [
        f"narrow range: {low:.3g} to {high:.3g} tuples/s" if narrow else "",
        f"poor fit: r2 {row['r2']:.2f}"
        if not narrow and row["r2"] is not None and row["r2"] < POOR_R2
        else "",
        f"few windows: {row['windows']}" if row["windows"] < FEWEST else "",
    ]
    return Fit(
        topology=row["topology"],
        component=row["component"],
        machine_type=row["machine_type"],
        cpu_ms=slope * 10,
        cpu_fixed=intercept,
        r2=row["r2"],
        windows=row["windows"],
        flag="; ".join(filter(None, doubts)) or None,
        spout=row["spout"],
    )


def middle(column: Column) -> Column:
    return F.percentile_approx(column, 0.5, 10_000)


def name(row: Row) -> tuple[str, str, str | None]:
    return row["topology"], row["component"], row["machine_type"]
