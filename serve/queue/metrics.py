"""The counters for Prometheus: all for the operator, and for each access key its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.responses import Response

from judging import Verdict
from judging.tasks import get_task
from judging.verdicts.build import pass_labels
from serve.calls.context import caller_name

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
WINDOW_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
TENTHS = tuple(step / 10 for step in range(1, 11))
OUTCOMES = ("accepted", "answered", "cached", "rejected", "expired", "abandoned")
"""How requests may end: ``accepted`` counts those that entered the queue, however they ended."""


@dataclass(frozen=True)
class QueueState:
    """The queue at one moment, and what happened in it since the start."""

    queued: Mapping[str, int]
    """Requests waiting, by judge."""
    running: Mapping[str, int]
    """Requests that the model has now, by judge."""
    waiting_tokens: int
    """Estimated tokens of what waits."""
    oldest_s: float
    """Seconds that the oldest request has waited; 0 if none waits."""
    counters: Mapping[str, int]
    """Requests since the start, by :data:`OUTCOMES`."""


class CallMetrics:
    """Counters and histograms of calls: of all, or of those of one access key."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._calls = self._counter("judge_http_requests", "Answered calls.", "route", "status")
        self._key_calls = self._counter(
            "judge_key_calls", "Answered calls by the name of their access key.", "key", "status"
        )
        self._call_seconds = self._histogram(
            "judge_http_request_duration_seconds",
            "From the first byte of a call to the last of its answer.",
            "route",
        )
        self._queue_seconds = self._histogram(
            "judge_request_queue_duration_seconds", "How long requests waited for the model."
        )
        self._verdicts = self._counter("judge_verdict", "Verdicts.", "judge", "status", "label")
        self._order_flips = self._counter(
            "judge_order_flip",
            "Pairs whose verdict changed with the order of the responses.",
            "judge",
        )
        self._confidence = self._histogram(
            "judge_confidence", "Confidence of scored verdicts.", buckets=TENTHS
        )

    def response(self) -> Response:
        """Answer with the counters in the format of Prometheus."""
        return Response(generate_latest(self.registry), media_type=CONTENT_TYPE_LATEST)

    def _of_call(self) -> Iterator[CallMetrics]:
        """Yield all counters that count the call that is being answered."""
        yield self

    def count_call(self, route: str, status: int, seconds: float) -> None:
        """Count one answered call."""
        for each in self._of_call():
            each._calls.labels(route, str(status)).inc()
            if caller := caller_name():
                each._key_calls.labels(caller, str(status)).inc()
            each._call_seconds.labels(route).observe(seconds)

    def count_wait(self, judge: str, seconds: float) -> None:
        """Count how long one request waited for the model."""
        for each in self._of_call():
            each._queue_seconds.labels(judge).observe(max(0.0, seconds))

    def count_verdict(self, judge: str, verdict: Verdict) -> None:
        """Count one verdict of a judge."""
        task = verdict.rubric.partition("/")[0]
        has_flipped = verdict.passes and len(set(pass_labels(get_task(task), verdict.passes))) > 1
        for each in self._of_call():
            each._verdicts.labels(judge, verdict.status, verdict.label or "").inc()
            if verdict.confidence is not None:
                each._confidence.labels(judge).observe(verdict.confidence)
            if has_flipped:
                each._order_flips.labels(judge).inc()

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(name, help_text, labels, registry=self.registry)

    def _histogram(
        self,
        name: str,
        help_text: str,
        label: str = "judge",
        buckets: tuple[float, ...] = SECONDS,
    ) -> Histogram:
        return Histogram(name, help_text, [label], buckets=buckets, registry=self.registry)


class Metrics(CallMetrics):
    """Counters and histograms of one service, for its operator, and apart those of each key.

    ``queue`` returns the queue as it is now.
    """

    def __init__(self, queue: Callable[[], QueueState]) -> None:
        super().__init__()
        self._by_key = defaultdict[str, CallMetrics](CallMetrics)
        ProcessCollector(registry=self.registry)
        self.registry.register(_QueueCollector(queue))
        build = Info("judge_build", "What answers.", registry=self.registry)
        build.info({name: version(name) for name in ("custos", "torch", "transformers")})
        self._window_seconds = self._histogram(
            "judge_window_inference_duration_seconds",
            "How long the model took for a window of requests.",
        )
        self._window_size = self._histogram(
            "judge_window_requests", "Requests given to the model at once.", buckets=WINDOW_SIZES
        )
        self._cache_faults = self._counter(
            "judge_cache_fault",
            "Times that the cache could not be read or written, or had too much to write.",
            "operation",
        )

    def _of_call(self) -> Iterator[CallMetrics]:
        yield self
        if caller := caller_name():
            yield self.of_key(caller)

    def of_key(self, name: str) -> CallMetrics:
        """Look up the counters of the calls of one access key, by its name."""
        return self._by_key[name]

    def count_cache_fault(self, operation: str) -> None:
        """Count a lookup (``read``) or writes (``write``, ``full``) that the cache did not do."""
        self._cache_faults.labels(operation).inc()

    def count_window(self, judge: str, num_requests: int, seconds: float) -> None:
        """Count one window of requests that the model has graded."""
        self._window_size.labels(judge).observe(num_requests)
        self._window_seconds.labels(judge).observe(seconds)


class _QueueCollector(Collector):
    def __init__(self, queue: Callable[[], QueueState]) -> None:
        self._queue = queue

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the queue as it is now."""
        queue = self._queue()
        outcomes = CounterMetricFamily("judge_requests", "Requests by outcome.", labels=["outcome"])
        for outcome, count in queue.counters.items():
            outcomes.add_metric([outcome], count)
        waiting = GaugeMetricFamily(
            "judge_num_requests_waiting", "Requests waiting for the model.", labels=["judge"]
        )
        running = GaugeMetricFamily(
            "judge_num_requests_running", "Requests that the model has now.", labels=["judge"]
        )
        for gauge, counts in ((waiting, queue.queued), (running, queue.running)):
            for judge, count in counts.items():
                gauge.add_metric([judge], count)
        yield from (outcomes, waiting, running)
        yield GaugeMetricFamily(
            "judge_num_tokens_waiting",
            "Estimated tokens waiting for the model.",
            queue.waiting_tokens,
        )
        yield GaugeMetricFamily(
            "judge_oldest_request_waiting_seconds",
            "How long the oldest waiting request has waited.",
            queue.oldest_s,
        )

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: before the first scrape there may be no judges yet."""
        return iter(())
