"""The tools, their versions, and the model names under which the service reads their prompts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]

CLIENT = ("anyio", "httpx", "numpy", "pillow", "pydantic>=2.14", "pyyaml", "rich")
"""What the client of custos needs in a tool's environment."""


@dataclass(frozen=True)
class Tool:
    """A package, and what its own prompts are called here."""

    name: str
    version: str
    requirements: tuple[str, ...] = ()
    """Packages beside the tool's own."""
    prompts: dict[str, str] = field(default_factory=dict)
    """Model name for each of the tool's own graders."""
    errors: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Cases that end in an error for one of them: the tool takes no empty response, or the service
    refuses the prompt, as the response forges its delimiters."""
    from_npm: bool = False
    with_torch: bool = False
    """It needs torch: the packages of ``.venv`` are added to its environment."""

    @property
    def environment(self) -> Path:
        """Return the folder of its environment."""
        return ROOT / f".venv-harness-{self.name}"

    @property
    def python(self) -> Path:
        """Return the interpreter of its environment."""
        return self.environment / "bin" / "python"

    @property
    def installed(self) -> str:
        """Return what the environment is made of, one requirement a line."""
        own = () if self.from_npm else (f"{self.name}=={self.version}",)
        return "\n".join((*own, *self.requirements, *CLIENT))


GEVAL = ("GEval", "GEval, rubric", "GEval, strict")
TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "openai",
            "3.57.0",
            prompts={
                "SimpleQA": "custos/simpleqa",
                "parse": "custos/qa",
                "responses.parse": "custos/qa",
            },
        ),
        Tool(
            "inspect_ai",
            "0.3.285",
            ("openai==3.57.0",),
            {
                "model_graded_qa": "custos/qa",
                "model_graded_fact": "custos/qa",
                "partial_credit": "custos/qa-partial",
            },
            {"model_graded_qa": ("hostile",), "partial_credit": ("hostile",)},
        ),
        Tool(
            "promptfoo",
            "0.121.20",
            prompts={
                "llm-rubric": "custos/promptfoo-rubric",
                "factuality": "custos/promptfoo-factuality",
                "model-graded-closedqa": "custos/promptfoo-closedqa",
                "g-eval": "custos/promptfoo-geval",
            },
            errors=dict.fromkeys(
                ("llm-rubric", "factuality", "model-graded-closedqa"), ("hostile",)
            ),
            from_npm=True,
        ),
        Tool(
            "deepeval",
            "4.3.1",
            prompts=dict.fromkeys(GEVAL, "custos/deepeval-geval"),
            errors=dict.fromkeys(GEVAL, ("empty", "hostile")),
        ),
        Tool(
            "ragas",
            "0.4.3",
            # It imports a module that later versions lack.
            ("langchain-community<0.4",),
            prompts={
                "AnswerAccuracy": "custos/ragas-answer-accuracy",
                "AnswerAccuracy (older)": "custos/ragas-answer-accuracy-old",
                "DiscreteMetric": "custos/qa",
            },
            errors={"AnswerAccuracy": ("empty",), "AnswerAccuracy (older)": ("hostile",)},
        ),
        Tool(
            "mlflow",
            "3.17.2",
            prompts={
                "Correctness": "custos/mlflow-correctness",
                "make_judge": "custos/mlflow-judge",
            },
            errors={"Correctness": ("hostile",)},
        ),
        Tool(
            "openevals",
            "0.2.2",
            ("langchain-openai==1.7.4",),
            {"create_llm_as_judge": "custos/openevals", "LangChain": "custos/openevals"},
        ),
        Tool("lm_eval", "0.4.13"),
        Tool(
            "lighteval",
            "0.13.0",
            prompts={"SimpleQA": "custos/simpleqa", "HLE": "custos/hle"},
            with_torch=True,
        ),
        Tool("trl", "1.16.0", with_torch=True),
    )
}
