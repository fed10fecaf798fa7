"""A misspelled table or column is found before Spark starts; nothing that Spark would answer is refused."""

import pytest

from laststand.emulator.analysis.query_names import UnknownNameError, check_names


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT * FROM faultz", "no table 'faultz'; did you mean 'faults'?"),
        ("select a.run FROM runs a JOIN fault USING (run)", "no table 'fault'; did you mean 'faults'?"),
        ("SELECT fautl FROM faults", "no column 'fautl'; did you mean 'fault'?"),
        ("SELECT f.nodez FROM faults AS f", "no column 'nodez'; did you mean 'nodes'?"),
        ("SELECT 1 FROM faults a, faults b WHERE b.tim_s > 1", "no column 'tim_s'; did you mean 'time_s'?"),
        ("SELECT fault AS f, tim_s FROM faults", "no column 'tim_s'; did you mean 'time_s'?"),
        ("SELECT sum(lost_record) FROM verdicts", "no column 'lost_record'; did you mean 'lost_records'?"),
        ("select 1 from partition_changes\nwhere electoin = 'elr'", "no column 'electoin'; did you mean 'election'?"),
    ],
)
def test_a_name_that_resembles_another_is_reported(query: str, told: str) -> None:
    with pytest.raises(UnknownNameError) as raised:
        check_names(query)
    assert str(raised.value) == told


@pytest.mark.parametrize(
    "query",
    [
        "",
        "SHOW TABLES",
        "SELECT * FROM nowhere",
        "SELECT extract(year FROM timestamp(started)) FROM runs",
        "SELECT a.runn FROM (SELECT run runn FROM faults) a",
        "SELECT transform(nodes, nod -> nod + 1) FROM faults",
        "SELECT n.noode FROM faults LATERAL VIEW explode(nodes) n AS noode",
        "SELECT fault, count(*) faulty FROM faults GROUP BY fault HAVING faulty > 1 ORDER BY faulty",
        "SELECT checks.check_id, counts[0].lost, switches.elr FROM verdicts JOIN runs USING (run)",
        "SELECT leader IS DISTINCT FROM previous_leader FROM partition_changes",
        "WITH fault(faultt) AS (SELECT fault FROM faults) SELECT faultt FROM fault",
        "WITH a AS (SELECT 1 AS x), fautls AS (SELECT fault FROM faults), run (kid, tims) AS (SELECT 1, 2) "
        "SELECT kid, tims, x FROM fautls, a, run",
        "SELECT k, valu FROM runs LATERAL VIEW explode(switches) s AS k, valu",
        "SELECT 1 FROM range(10)",
        "SELECT * FROM parquet.`faultz`",
        "SELECT max(time_s) AS tim_s FROM faults ORDER BY tim_s",
        "SELECT FAULT, Time_S FROM `faults` WHERE fault = 'fautl' -- fautl",
        'SELECT 1 /* fautl */ FROM faults WHERE fault = "fautl"',
        "SELECT row_number() OVER w AS runn FROM faults WINDOW w AS (PARTITION BY run ORDER BY time_s)",
    ],
)
def test_what_spark_may_answer_is_left_to_it(query: str) -> None:
    check_names(query)
