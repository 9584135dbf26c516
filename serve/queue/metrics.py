"""What ``GET /metrics`` tells Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from judging import Verdict

if TYPE_CHECKING:
    from serve.queue.service import QueueState

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
WINDOW_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
TENTHS = tuple(step / 10 for step in range(1, 11))


class Metrics:
    """Counters and histograms of one service, in a registry of its own.

    Args:
        queue: Gives the queue at the moment of a scrape.
    """

    def __init__(self, queue: Callable[[], QueueState]) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.registry.register(_Queue(queue))
        self.calls = Counter(
            "judge_http_requests", "Answered calls.", ["route", "status"], registry=self.registry
        )
        self.call_seconds = Histogram(
            "judge_http_request_duration_seconds",
            "From the first byte of a call to the last of its answer.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.queue_seconds = Histogram(
            "judge_request_queue_duration_seconds",
            "How long requests waited for the model.",
            ["judge"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.window_seconds = Histogram(
            "judge_window_inference_duration_seconds",
            "How long the model took for a window of requests.",
            ["judge"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.window_size = Histogram(
            "judge_window_requests",
            "Requests handed to the model at once.",
            ["judge"],
            buckets=WINDOW_SIZES,
            registry=self.registry,
        )
        self.verdicts = Counter(
            "judge_verdict", "Verdicts.", ["judge", "status", "label"], registry=self.registry
        )
        self.order_flips = Counter(
            "judge_order_flip",
            "Pairs whose verdict changed with the order of the responses.",
            ["judge"],
            registry=self.registry,
        )
        self.confidence = Histogram(
            "judge_confidence",
            "Confidence of scored verdicts.",
            ["judge"],
            buckets=TENTHS,
            registry=self.registry,
        )

    def count_verdict(self, judge: str, verdict: Verdict) -> None:
        """Count one answer of a judge."""
        self.verdicts.labels(judge, verdict.status, verdict.label or "").inc()
        if verdict.confidence is not None:
            self.confidence.labels(judge).observe(verdict.confidence)
        if len(verdict.passes) == 2 and verdict.needs_review:
            self.order_flips.labels(judge).inc()

    def count_window(self, judge: str, num_requests: int, seconds: float) -> None:
        """Count one window of requests that went before the model."""
        self.window_size.labels(judge).observe(num_requests)
        self.window_seconds.labels(judge).observe(seconds)


class _Queue(Collector):
    def __init__(self, queue: Callable[[], QueueState]) -> None:
        self._queue = queue

    def collect(self) -> Iterator[Metric]:
        queue = self._queue()
        outcomes = CounterMetricFamily(
            "judge_requests", "Requests by what became of them.", labels=["outcome"]
        )
        for outcome, count in queue.counters.items():
            outcomes.add_metric([outcome], count)
        yield outcomes
        for name, help_text, counts in (
            ("judge_num_requests_waiting", "Requests waiting for the model.", queue.queued),
            ("judge_num_requests_running", "Requests before the model.", queue.running),
        ):
            gauge = GaugeMetricFamily(name, help_text, labels=["judge"])
            for judge, count in counts.items():
                gauge.add_metric([judge], count)
            yield gauge
        yield GaugeMetricFamily(
            "judge_num_tokens_waiting",
            "Estimated tokens waiting for the model.",
            value=queue.waiting_tokens,
        )

    def describe(self) -> Iterator[Metric]:
        """Nothing ahead of the first scrape: there may be no judges yet."""
        return iter(())
