"""The order in which jobs go to the model, and which go together."""

import math
from collections import Counter
from collections.abc import Iterable

import pytest

from judging import JudgeRequest
from serve.queue.lanes import (
    RETURN_SHARE,
    SAVED_WINDOWS,
    SHORT_S,
    TEXTS_AT_ONCE,
    Job,
    Kind,
    Lanes,
    Pace,
)
from tests.serve.made_up import row


def make_lanes(
    *judges: str, max_jobs: int = 1000, max_tokens: int = 10**6, window_tokens: int = 1000
) -> Lanes[Job]:
    return Lanes(
        judges or ("a",), max_jobs=max_jobs, max_tokens=max_tokens, window_tokens=window_tokens
    )


def job(
    question: str = "", *, judge: str = "a", kind: Kind = "score", tokens: int = 100, name: str = ""
) -> Job:
    request = JudgeRequest.model_validate(row(id=name or question, question=question))
    return Job(judge, kind, tokens, request)


def names(window: Iterable[Job]) -> list[str]:
    return [job.request.id for job in window if job.request]


def all_windows(lanes: Lanes[Job]) -> list[list[Job]]:
    windows: list[list[Job]] = []
    while window := lanes.take():
        windows.append(window)
    return windows


def test_lanes_have_their_turn_one_after_another() -> None:
    lanes = make_lanes("busy", "quiet")
    lanes.add(job(f"b{number}", judge="busy") for number in range(40))
    assert {j.judge for j in lanes.take()} == {"busy"}
    lanes.add(job(f"q{number}", judge="quiet") for number in range(2))
    lanes.add([job("text", judge="quiet", kind="text")])
    # The quiet judge's turns are next, though the busy judge's jobs have waited for longer.
    assert names(lanes.take()) == ["q0", "q1"]
    assert names(lanes.take()) == ["text"]
    assert {j.judge for j in lanes.take()} == {"busy"}


def test_only_lanes_of_a_kind() -> None:
    lanes = make_lanes()
    lanes.add([job("text", kind="text")])
    assert lanes.take(["score"]) == []
    lanes.add([job("score")])
    assert names(lanes.take(["score"])) == ["score"]
    assert names(lanes.take()) == ["text"]
    assert lanes.take() == []


def test_windows_hold_as_many_tokens_as_they_may() -> None:
    lanes = make_lanes(window_tokens=1000)
    lanes.add(job(str(number), tokens=300) for number in range(7))
    lanes.add([job("long", tokens=5000)])
    windows = all_windows(lanes)
    assert [len(window) for window in windows] == [3, 3, 1, 1]
    assert names(windows[-1]) == ["long"]  # longer than a window, so alone in it
    assert (lanes.num_jobs, lanes.tokens) == (0, 0)


def test_jobs_about_one_question_go_together_and_the_oldest_goes_first() -> None:
    lanes = make_lanes(window_tokens=1400)
    questions = list("abcdefghij") * 4  # every question is asked four times, far apart
    jobs = [job(question, name=f"{question}{n}") for n, question in enumerate(questions)]
    lanes.add(jobs)
    windows = [names(window) for window in all_windows(lanes)]
    waiting = names(jobs)
    for window in windows:
        assert window[0] == waiting[0]
        waiting = [name for name in waiting if name not in window]
    assert waiting == []
    assert len([window for window in windows if any(name[0] == "a" for name in window)]) == 1


def test_jobs_about_the_same_picture_go_together_and_others_do_not() -> None:
    def pictured(name: str, picture: str) -> Job:
        request = JudgeRequest.model_validate(row(id=name, question="?", images=[picture]))
        return Job("a", "score", 100, request)

    lanes = make_lanes(window_tokens=400)
    lanes.add([pictured("red 1", "red"), pictured("blue 1", "blue"), job("x"), job("y")])
    lanes.add([pictured("red 2", "red"), pictured("blue 2", "blue")])
    assert names(lanes.take()) == ["red 1", "red 2", "blue 1", "blue 2"]


def test_crowds_take_half_of_a_window_at_most() -> None:
    lanes = make_lanes(window_tokens=1400)
    # Before every quiet job stands one with a crowd about its question at the back.
    questions = [f"{kind}{number}" for number in range(10) for kind in ("loud", "quiet")]
    questions += [f"loud{number}" for number in range(10) for _ in range(14)]
    lanes.add(map(job, questions))
    windows = [names(window) for window in all_windows(lanes)]
    assert sum(map(len, windows)) == len(questions)
    has_quiet = [any("quiet" in name for name in window) for window in windows]
    # At least seven of the oldest go with every window, and twenty were there before the crowds.
    assert not any(has_quiet[3:])


def test_texts_with_a_request_are_written_side_by_side() -> None:
    lanes = make_lanes()
    lanes.add(job(str(number), kind="text", tokens=500) for number in range(TEXTS_AT_ONCE + 3))
    assert len(lanes.take()) == TEXTS_AT_ONCE
    free = Job("a", "text", 500)
    lanes.add([free, Job("a", "text", 500)])
    assert len(lanes.take()) == 3  # up to the text without a request
    assert lanes.take() == [free]
    assert len(lanes.take()) == 1


def test_texts_that_are_written_together_are_of_like_length() -> None:
    lanes = make_lanes()
    lanes.add(job(str(tokens), kind="text", tokens=tokens) for tokens in (100, 150, 200, 300, 900))
    assert [names(window) for window in all_windows(lanes)] == [
        ["100", "150", "200"],
        ["300"],
        ["900"],
    ]


def test_room_is_bounded_in_jobs_and_tokens_but_an_empty_queue_takes_anything() -> None:
    lanes = make_lanes(max_jobs=2, max_tokens=500)
    assert lanes.has_room(10, 10_000)
    lanes.add([job("a", tokens=450)])
    assert lanes.has_room(1, 50)
    assert not lanes.has_room(1, 51)
    assert not lanes.has_room(2, 50)
    lanes.add([job("b", tokens=50)])
    assert not lanes.has_room(1, 1)


def test_removed_jobs_leave_their_place() -> None:
    lanes = make_lanes("a", "b")
    jobs = [job("a1"), job("a2"), job("b1", judge="b"), job("a3", kind="text")]
    lanes.add(jobs)
    assert Counter(job.judge for job in lanes) == {"a": 3, "b": 1}
    lanes.remove([jobs[0], jobs[3]])
    lanes.remove([jobs[0]])  # as when it has been taken already
    assert Counter(job.judge for job in lanes) == {"a": 1, "b": 1}
    assert (lanes.num_jobs, lanes.tokens) == (2, 200)
    lanes.remove([jobs[1], jobs[2]])
    assert (lanes.num_jobs, lanes.tokens, lanes.take()) == (0, 0, [])


def test_callers_are_waited_for_after_a_window_for_a_share_of_its_time() -> None:
    pace = Pace()
    assert pace.are_callers_back(0)
    pace.count_scores(100.0, 2.0, num_jobs=6, tokens=600, num_waiting=2)
    assert pace.seconds_for_callers(100.0) == pytest.approx(2.0 * RETURN_SHARE)
    assert pace.seconds_for_callers(101.0) == 0
    assert not pace.are_callers_back(7)
    assert pace.are_callers_back(8)


def test_the_time_to_come_back_follows_the_speed() -> None:
    pace = Pace()
    assert pace.retry_after(3000, window_tokens=1000) == 3  # as if a window took a second
    pace.count_scores(0.0, 2.0, num_jobs=1, tokens=200, num_waiting=0)
    assert pace.tokens_per_second == 100
    assert pace.retry_after(3000, window_tokens=1000) == 30
    assert pace.retry_after(10**6, window_tokens=1000) == 60
    assert pace.retry_after(0, window_tokens=1000) == 1
    pace.count_scores(5.0, 1.0, num_jobs=1, tokens=200, num_waiting=0)
    assert pace.tokens_per_second == 120


def test_where_callers_compete_a_window_is_as_long_as_its_time_allows() -> None:
    pace = Pace()
    assert pace.short_tokens(6000) == 6000  # nothing is known of the speed
    pace.count_scores(10.0, 10.0, num_jobs=9, tokens=6000, num_waiting=0)
    assert pace.short_tokens(6000) == round(600 * SHORT_S)
    pace.count_scores(11.0, 0.001, num_jobs=9, tokens=6000, num_waiting=0)
    assert pace.short_tokens(6000) == 6000
    lanes = make_lanes(window_tokens=1000)
    lanes.short_tokens = 300
    lanes.add(of_caller("one", 20))
    assert len(lanes.take()) == 10
    lanes = make_lanes(window_tokens=1000)
    lanes.short_tokens = 300
    lanes.add([*of_caller("one", 20), *of_caller("two", 20)])
    assert len(lanes.take()) == 3


def test_jobs_that_go_first_in_any_case_are_read_together() -> None:
    lanes = make_lanes(window_tokens=1000)
    lanes.short_tokens = 300
    lanes.add(of_caller("busy", 80))
    for _ in range(3):
        lanes.take()
    lanes.add(of_caller("light", 8))
    assert names(lanes.take()) == ["light"] * 8
    assert len(lanes.take()) == 10
    lanes.add(of_caller("light", 8))
    assert names(lanes.take(before=math.inf)) == ["light"] * 8


def test_a_short_job_goes_before_a_long_one_of_a_caller_who_has_as_much() -> None:
    lanes = make_lanes(window_tokens=400)
    lanes.add(of_caller("long", 3, tokens=400))
    lanes.add(of_caller("short", 3))
    lanes.short_tokens = 100
    assert [names(lanes.take()) for _ in range(2)] == [["short"] * 3, ["long"]]


def test_jobs_that_are_put_back_come_first_and_cost_their_caller_nothing() -> None:
    lanes = make_lanes(window_tokens=400)
    jobs = of_caller("one", 6)
    lanes.add(jobs)
    window = lanes.take()
    lanes.put_back(window[1:])
    lanes.add(of_caller("two", 1))
    assert (lanes.num_jobs, lanes.tokens) == (6, 600)
    lanes.short_tokens = 200
    assert [job.caller for job in lanes.take()].count("two") == 1
    assert [*lanes] == jobs[2:]


def test_each_key_has_room_for_its_part_of_a_full_queue() -> None:
    lanes = Lanes[Job](["a"], max_jobs=12, max_tokens=12_000, window_tokens=500, caller_share=0.5)
    assert lanes.is_owed("one", 12, 12_000)  # of one key alone the whole queue is its part
    lanes.add(of_caller("one", 6))
    lanes.add(of_caller("two", 6))
    assert not lanes.has_room(1, 1)
    assert not lanes.is_owed("one", 1, 1)
    assert lanes.is_owed("quiet", 4, 4_000)
    assert not lanes.is_owed("quiet", 5, 400)
    assert not lanes.is_owed("quiet", 1, 4_001)
    assert not lanes.is_owed("", 1, 1)  # of callers without a key nobody knows how many they are


def of_caller(caller: str, number: int, *, tokens: int = 100) -> list[Job]:
    return [
        Job("a", "score", tokens, each.request, caller=caller)
        for each in (job(f"{caller} {n}", name=caller) for n in range(number))
    ]


def test_callers_share_a_lane_evenly_in_tokens() -> None:
    lanes = make_lanes(window_tokens=1200)
    lanes.add(of_caller("busy", 100))
    assert names(lanes.take()) == ["busy"] * 12
    lanes.add(of_caller("quiet", 3))
    lanes.add(of_caller("long", 10, tokens=300))
    # The model owes the newcomers what the other had before them: a window.
    windows = [names(window) for window in all_windows(lanes)]
    tokens = {"busy": 100, "quiet": 100, "long": 300}
    shares = {
        name: sum(tokens[name] * window.count(name) for window in windows[:3]) for name in tokens
    }
    assert shares["quiet"] == 300
    assert 1200 + shares["busy"] == pytest.approx(shares["long"], abs=300)
    assert [window.count("quiet") for window in windows[:2]] == [3, 0]


def test_a_caller_that_was_away_has_saved_a_few_windows_up_and_no_more() -> None:
    lanes = make_lanes(window_tokens=1000)
    lanes.add(of_caller("early", 1))
    lanes.add(of_caller("busy", 800))
    for _ in range(40):
        lanes.take()
    lanes.add(of_caller("early", 300))
    counts = [names(lanes.take()).count("early") for _ in range(SAVED_WINDOWS + 4)]
    assert counts[: SAVED_WINDOWS + 1] == [10] * (SAVED_WINDOWS + 1)
    assert all(abs(count - 5) <= 1 for count in counts[SAVED_WINDOWS + 1 :])


def test_a_caller_below_its_part_waits_for_no_window_but_the_one_that_runs() -> None:
    lanes = make_lanes("a", "b", window_tokens=1000)
    lanes.short_tokens = 300
    for caller in ("first", "second"):
        lanes.add(of_caller(caller, 50, tokens=250))  # each has jobs for both judges
        lanes.add(Job("b", "score", 250, each.request, caller) for each in of_caller(caller, 50))
    for _ in range(4):
        lanes.take()
    for _ in range(20):
        lanes.add(of_caller("quiet", 2, tokens=50))
        assert names(lanes.take()) == ["quiet"] * 2
        others = [lanes.take(), lanes.take()]
        assert {job.caller for window in others for job in window} == {"first", "second"}


def test_a_long_job_for_one_judge_keeps_no_short_one_for_another_waiting() -> None:
    lanes = make_lanes("a", "b", window_tokens=3000)
    short = job("short", judge="b", tokens=20)
    short.caller = "short"
    lanes.add([*of_caller("long", 1, tokens=2000), short])
    assert lanes.take(before=20) == []
    assert lanes.take(before=1500) == [short]
    assert len(lanes.take()) == 1


def test_the_lanes_of_one_caller_take_turns_whatever_their_jobs_cost() -> None:
    lanes = make_lanes("a", "b", window_tokens=1000)
    for number in range(20):
        lanes.add([job(f"{number}", tokens=10), job(f"{number}", judge="b", tokens=800)])
    assert {lanes.take()[0].judge for _ in range(2)} == {"a", "b"}


def test_jobs_that_are_dropped_are_not_charged() -> None:
    lanes = make_lanes(window_tokens=1000)
    lanes.add(of_caller("steady", 40))
    dropped = of_caller("fickle", 40)
    lanes.add(dropped)
    lanes.remove(dropped)
    lanes.add(of_caller("fickle", 5))
    assert names(lanes.take()).count("fickle") == 5


def test_a_caller_takes_a_share_of_the_queue() -> None:
    lanes = Lanes[Job](["a"], max_jobs=10, max_tokens=1000, window_tokens=500, caller_share=0.5)
    assert lanes.has_share("busy", 20, 5000)  # nothing of it waits
    lanes.add(of_caller("busy", 4))
    assert lanes.has_share("busy", 1, 100)
    assert not lanes.has_share("busy", 2, 2)
    assert not lanes.has_share("busy", 1, 101)
    assert lanes.has_share("quiet", 6, 600)
    assert lanes.has_share("", 6, 600)  # of callers without a key nobody knows who they are


def test_a_window_in_which_the_machine_stood_still_costs_its_caller_no_more_than_it_may_save() -> (
    None
):
    lanes = make_lanes(window_tokens=100)
    lanes.add(of_caller("unlucky", 100))
    lanes.add(of_caller("other", 100))
    window = lanes.take()
    assert names(window) == ["unlucky"]
    lanes.charge_taken(window, 10**9)
    order = [names(lanes.take())[0] for _ in range(SAVED_WINDOWS + 4)]
    assert 0 < order.count("unlucky") < 4
