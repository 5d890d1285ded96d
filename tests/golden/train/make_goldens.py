#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes trl_losses.json beside it: losses, gradients and advantages that Hugging Face TRL computes.

    python3 -m venv build/trl
    build/trl/bin/pip install trl==1.16.0 transformers==5.23.0 accelerate==1.15.0 torch==2.11.0
    build/trl/bin/python tests/golden/train/make_goldens.py

TRL is not among the project's own packages, hence the separate environment. The trainers are TRL's, made without
their constructors: only the model (log-probabilities given below), the sampler (made-up tokens) and the reward function
(a list) are ours. What is between them, `_generate_and_score_completions` and `_compute_loss`, is TRL's code, run in
double precision; the gradient is autograd's, with respect to the per-token log-probabilities that the model returned.
Deterministic: the same versions write the same bytes.
"""

import collections
import functools
import json
import math
import pathlib
import random
import tempfile
import types

import accelerate
import torch
import transformers
import trl

OUT = pathlib.Path(__file__).resolve().parent / "trl_losses.json"
SEED = 20261121
GROUP_SIZE = 4
LENGTHS = [1, 7, 3, 5, 6, 2, 4, 7]
ADVANTAGES = [1.25, -0.75, 0.0, -0.5, 0.8125, -1.5, 1.4375, -0.75]
# Mean of log(new / old) of each completion: some past either clip bound also as a mean over the sequence.
DRIFT = [0.4, 0.38, -0.1, -0.36, 0.05, -0.33, 0.36, -0.04]
TRUNCATED = [False, True, False, False, False, False, True, False]
EOS, TOKEN, PAD = 2, 5, 0
MAX_COMPLETION_LENGTH = 10
SAMPLER_CLIP_MIN = 0.7
SAMPLER_CLIP_MAX = {"token": 1.5, "sequence": 2.6}


def made_up_log_probs():
    """Log-probabilities of 8 completions under 4 models, 6 decimals: `new`, `old`, `ref` and `sampling`.

    |new - old| <= 0.5; `near` is an old model that is close enough for ratios of whole sequences."""
    rng = random.Random(SEED)

    def below_zero(value):
        return round(min(value, -0.01), 6)

    made = {name: [] for name in ("new", "old", "near", "ref", "sampling")}
    for i, (length, drift) in enumerate(zip(LENGTHS, DRIFT, strict=True)):
        new = [round(-0.6 - rng.expovariate(1.0), 6) for _ in range(length)]
        step = [max(-0.5, min(0.5, drift + rng.gauss(0.0, 0.2))) for _ in range(length)]
        old = [below_zero(n - s) for n, s in zip(new, step, strict=True)]
        noise = [rng.gauss(0.15 if i % 2 else -0.25, 0.25) for _ in range(length)]
        made["new"].append(new)
        made["old"].append(old)
        made["near"].append([below_zero(n - 0.3 * s) for n, s in zip(new, step, strict=True)])
        made["ref"].append([below_zero(n + rng.gauss(0.0, 0.35)) for n in new])
        made["sampling"].append([below_zero(o - x) for o, x in zip(old, noise, strict=True)])
    return made


LOG_PROBS = made_up_log_probs()


def padded(rows):
    """[completion, longest] with a value in the padding that must not count."""
    longest = max(map(len, rows))
    return torch.tensor([row + [-1.0 - 0.1 * i] * (longest - len(row)) for i, row in enumerate(rows)])


def ragged(tensor, rows):
    for values, row in zip(tensor.tolist(), rows, strict=True):
        assert not any(values[len(row) :]), "the padding has a gradient"
    return [values[: len(row)] for values, row in zip(tensor.tolist(), rows, strict=True)]


class Model(torch.nn.Module):
    """Stands where a model is asked for; only its `training` flag and its identity are read."""

    is_gradient_checkpointing = False


class World:
    """What surrounds one trainer: `log_probs` of each model and the rewards of each completion."""

    def __init__(self, new, old, ref, sampling, truncated, rewards):
        self.policy, self.ref_model = Model(), Model()
        self.new = padded(new).requires_grad_()
        self.old, self.ref = padded(old), padded(ref)
        self.sampling, self.truncated, self.rewards = sampling, truncated, rewards
        self.lengths = [len(row) for row in new]

    def log_probs_of(self, model, *args, **kwargs):
        if model is self.ref_model:
            log_probs = self.ref
        else:
            log_probs = self.new if torch.is_grad_enabled() else self.old
        return log_probs, torch.zeros_like(log_probs), None

    def completion_ids(self):
        ends = [TOKEN if cut else EOS for cut in self.truncated]
        return [[TOKEN] * (length - 1) + [end] for length, end in zip(self.lengths, ends, strict=True)]

    def generate_grpo(self, prompts):
        ids = self.completion_ids()
        return [[TOKEN]] * len(ids), ids, None, [""] * len(ids), self.sampling, {}, None, [None] * len(ids)

    def generate_rloo(self, prompts):
        ids = self.completion_ids()
        return [[TOKEN]] * len(ids), ids, [""] * len(ids)

    def reward(self, **kwargs):
        return self.rewards


def make_trainer(trainer_class, config, world):
    trainer = trainer_class.__new__(trainer_class)
    for field in type(config).__annotations__:
        setattr(trainer, field, getattr(config, field))
    trainer.args = config
    trainer.accelerator = accelerate.Accelerator(cpu=True)  # a config made after it would reset it
    trainer.state = types.SimpleNamespace(global_step=0)
    trainer.model, trainer.ref_model = world.policy, world.ref_model
    trainer.processing_class = trainer._tokenizer = types.SimpleNamespace(pad_token_id=PAD)
    trainer.eos_token_ids = [EOS]
    trainer.epsilon_low = config.epsilon
    trainer.epsilon_high = config.epsilon if config.epsilon_high is None else config.epsilon_high
    trainer.current_gradient_accumulation_steps = config.gradient_accumulation_steps
    trainer.aux_loss_enabled = trainer._entropy_bonus_enabled = trainer.log_multimodal = trainer._is_vlm = False
    trainer.environments = trainer.environment_factories = trainer.tools = None
    trainer.reward_funcs, trainer.reward_func_names = [world.reward], ["reward"]
    trainer.reward_processing_classes, trainer.reward_weights = [None], torch.ones(1)
    trainer._metrics = {"train": collections.defaultdict(list)}
    trainer._logs = collections.defaultdict(list, rewards=collections.defaultdict(list), extra={})
    trainer._pending_extra_logs, trainer._pending_metrics = {}, {}
    trainer._get_per_token_logps_and_entropies = world.log_probs_of
    trainer._generate = world.generate_grpo if trainer_class is trl.GRPOTrainer else world.generate_rloo
    return trainer


def make_config(config_class, size, group_size, **options):
    return config_class(
        output_dir=tempfile.gettempdir(),
        report_to="none",
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=size,
        num_generations=group_size,
        max_completion_length=MAX_COMPLETION_LENGTH,
        pad_to_multiple_of=None,
        generation_batch_size=None,
        **options,
    )


def scored(trainer, world):
    """The batch as TRL prepares it: masks, old and reference log-probabilities, ratios, advantages."""
    return trainer._generate_and_score_completions([{"prompt": ""} for _ in world.lengths])


def finite_or_none(value):
    return value if math.isfinite(value) else None


def last_metrics(trainer, keep):
    metrics = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    return {name: finite_or_none(value) for name, value in sorted(metrics.items()) if name.startswith(keep)}


def loss_case(name, old="old", truncated=None, num_items=None, **options):
    """One call of TRL's loss. `old` names the old model, "same" is the one that is trained (on-policy)."""
    rloo = options.pop("trainer", "grpo") == "rloo"
    truncated = truncated or [False] * len(LENGTHS)
    same = old == "same"
    old_rows = LOG_PROBS["new" if same else old]
    sampling = LOG_PROBS["sampling"] if options.get("use_vllm") else None
    world = World(LOG_PROBS["new"], old_rows, LOG_PROBS["ref"], sampling, truncated, [0.0] * len(LENGTHS))

    # With one iteration TRL keeps no old log-probabilities and takes the trained ones, detached.
    options = {"epsilon": 0.2, "epsilon_high": 0.28, "beta": 0.0, "num_iterations": 1 if same else 2} | options
    options.setdefault("mask_truncated_completions", any(truncated))
    config = make_config(trl.RLOOConfig if rloo else trl.GRPOConfig, len(LENGTHS), GROUP_SIZE, **options)
    trainer = make_trainer(trl.RLOOTrainer if rloo else trl.GRPOTrainer, config, world)
    inputs = scored(trainer, world)
    if not rloo:
        assert ("old_per_token_logps" in inputs) == (not same)
    inputs["advantages"] = torch.tensor(ADVANTAGES)
    if num_items is not None:
        inputs["num_items_in_batch"] = torch.tensor(float(num_items))
    trainer._metrics["train"].clear()
    loss = trainer._compute_loss(world.policy, inputs)
    assert loss.dtype == torch.float64
    loss.backward()

    settings = {
        "trainer": "rloo" if rloo else "grpo",
        "group_size": GROUP_SIZE,
        "epsilon_low": trainer.epsilon_low,
        "epsilon_high": trainer.epsilon_high,
        "beta": config.beta,
        "mask_truncated_completions": config.mask_truncated_completions,
        "gradient_accumulation_steps": config.gradient_accumulation_steps,
    }
    case = {"name": name, "settings": settings, "advantages": ADVANTAGES, "truncated": truncated}
    case |= {"old_log_probs": old_rows, "ref_log_probs": LOG_PROBS["ref"], "log_probs": LOG_PROBS["new"]}
    if not rloo:
        settings |= {
            "loss_type": config.loss_type,
            "importance_sampling_level": config.importance_sampling_level,
            "delta": config.delta,
            "use_bias_correction_kl": config.use_bias_correction_kl,
            "max_completion_length": config.max_completion_length,
            "num_items_in_batch": inputs["num_items_in_batch"].item(),
            "steps_per_generation": config.steps_per_generation,
            "num_processes": trainer.accelerator.num_processes,
            "off_policy_mask_threshold": config.off_policy_mask_threshold,
            "sampler_correction": None,
        }
        if config.loss_type == "sapo":
            settings |= {k: getattr(config, k) for k in ("sapo_temperature_pos", "sapo_temperature_neg")}
        if config.loss_type == "vespo":
            names = ("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg")
            settings |= {k: getattr(config, k) for k in names}
    if sampling is not None:
        settings["sampler_correction"] = config.vllm_importance_sampling_mode
        settings["sampler_clip_min"] = config.vllm_importance_sampling_clip_min
        settings["sampler_clip_max"] = config.vllm_importance_sampling_clip_max
        ratio = inputs["importance_sampling_ratio"]
        case["sampling_log_probs"] = sampling
        case["sampler_ratio"] = [
            values[: len(row)] if len(values) > 1 else values
            for values, row in zip(ratio.tolist(), sampling, strict=True)
        ]
    case |= {"loss": loss.item(), "gradient": ragged(world.new.grad, LOG_PROBS["new"])}
    case["metrics"] = last_metrics(trainer, ("clip_ratio", "cispo", "kl", "vespo"))
    return case


def loss_cases():
    token, sequence = {}, {"importance_sampling_level": "sequence"}
    kl, plain_kl = {"beta": 0.04}, {"beta": 0.04, "use_bias_correction_kl": False}
    for loss_type in ("grpo", "bnpo", "dr_grpo", "dapo"):
        case = functools.partial(loss_case, loss_type=loss_type)
        yield case(f"{loss_type}_token")
        yield case(f"{loss_type}_sequence", **sequence)
        yield case(f"{loss_type}_token_kl", **kl)
        yield case(f"{loss_type}_token_plain_kl", **plain_kl)
        yield case(f"{loss_type}_sequence_kl", **sequence, **kl)
        yield case(f"{loss_type}_sequence_plain_kl", **sequence, **plain_kl)
        yield case(f"{loss_type}_token_delta", delta=1.4)
        yield case(f"{loss_type}_on_policy_plain_kl", old="same", **plain_kl)
        yield case(f"{loss_type}_token_truncated_plain_kl", truncated=TRUNCATED, **plain_kl)
    yield loss_case("grpo_on_policy", old="same", loss_type="grpo")
    yield loss_case("grpo_on_policy_kl", old="same", loss_type="grpo", **kl)
    yield loss_case("grpo_sequence_on_policy", old="same", loss_type="grpo", **sequence)
    yield loss_case("grpo_sequence_delta", loss_type="grpo", delta=1.4, **sequence)
    yield loss_case("grpo_token_delta_kl", loss_type="grpo", delta=1.4, **kl)
    yield loss_case("grpo_token_symmetric", loss_type="grpo", epsilon_high=None)
    yield loss_case("grpo_sequence_narrow", loss_type="grpo", old="near", epsilon=3e-4, epsilon_high=4e-4, **sequence)
    yield loss_case("grpo_sequence_truncated", loss_type="grpo", truncated=TRUNCATED, **sequence)
    yield loss_case("grpo_all_truncated", loss_type="grpo", truncated=[True] * len(LENGTHS))
    yield loss_case("dapo_all_truncated", loss_type="dapo", truncated=[True] * len(LENGTHS))
    yield loss_case("grpo_off_policy_mask", loss_type="grpo", off_policy_mask_threshold=0.2)
    accumulated = {"gradient_accumulation_steps": 2, "num_items": 60}
    yield loss_case("grpo_accumulated", loss_type="grpo", **accumulated)
    yield loss_case("dapo_accumulated", loss_type="dapo", **accumulated)
    yield loss_case("dapo_two_updates_a_batch", loss_type="dapo", steps_per_generation=4, **accumulated)

    for level, options in (("token", token), ("sequence", sequence)):
        yield loss_case(f"cispo_{level}", loss_type="cispo", epsilon_high=1.28, **options)
        yield loss_case(f"cispo_{level}_plain_kl", loss_type="cispo", epsilon_high=1.28, **options, **plain_kl)
        yield loss_case(f"sapo_{level}", loss_type="sapo", **options)
        yield loss_case(f"luspo_{level}", loss_type="luspo", **options)
    yield loss_case("cispo_token_kl", loss_type="cispo", epsilon_high=1.28, **kl)
    yield loss_case("cispo_token_unclipped", loss_type="cispo", epsilon_high=5.0)
    yield loss_case("cispo_on_policy", loss_type="cispo", old="same", epsilon_high=5.0)
    yield loss_case("cispo_token_truncated", loss_type="cispo", epsilon_high=1.28, truncated=TRUNCATED)
    yield loss_case("sapo_token_plain_kl", loss_type="sapo", **plain_kl)
    yield loss_case("luspo_sequence_plain_kl", loss_type="luspo", **sequence, **plain_kl)
    yield loss_case("vespo", loss_type="vespo")

    for level, clip_max in SAMPLER_CLIP_MAX.items():
        bounds = {"vllm_importance_sampling_clip_min": SAMPLER_CLIP_MIN, "vllm_importance_sampling_clip_max": clip_max}
        for rule in ("truncate", "mask"):
            mode = f"{level}_{rule}"
            options = {"use_vllm": True, "vllm_importance_sampling_mode": mode} | bounds
            yield loss_case(f"grpo_sampler_{mode}", loss_type="grpo", **options)
            yield loss_case(f"dapo_sampler_{mode}_plain_kl", loss_type="dapo", **options, **plain_kl)
            yield loss_case(f"cispo_sampler_{mode}", loss_type="cispo", epsilon_high=1.28, **options)

    yield loss_case("rloo", trainer="rloo")
    yield loss_case("rloo_near", trainer="rloo", old="near")
    yield loss_case("rloo_on_policy", trainer="rloo", old="same")
    yield loss_case("rloo_truncated", trainer="rloo", old="near", truncated=TRUNCATED)


def check_that_all_branches_are_met(cases):
    """A golden whose clip never acts would agree with an implementation that has none."""
    by_name = {case["name"]: case for case in cases}
    assert len(by_name) == len(cases)
    for name in ("grpo_token", "grpo_sequence", "grpo_token_delta", "rloo", "rloo_near", "grpo_sequence_narrow"):
        metrics = by_name[name]["metrics"]
        assert 0 < metrics["clip_ratio/low_mean"] < 1 and 0 < metrics["clip_ratio/high_mean"] < 1, name
    for level in ("token", "sequence"):
        assert 0 < by_name[f"cispo_{level}"]["metrics"]["cispo_clip_ratio"] < 1
        assert by_name[f"grpo_{level}_delta"]["loss"] != by_name[f"grpo_{level}"]["loss"]
    assert by_name["grpo_off_policy_mask"]["loss"] != by_name["grpo_token"]["loss"]
    for level, clip_max in SAMPLER_CLIP_MAX.items():
        for rule, met in (("truncate", {SAMPLER_CLIP_MIN, clip_max}), ("mask", {0.0})):
            case = by_name[f"grpo_sampler_{level}_{rule}"]
            ratios = set(sum(case["sampler_ratio"], []))
            assert met <= ratios and any(SAMPLER_CLIP_MIN < ratio < clip_max for ratio in ratios)
    for case in cases:
        flat = sum(case["gradient"], [])
        assert any(flat) != ("all_truncated" in case["name"]), case["name"]


def advantage_case(name, rewards, trainer="grpo", lengths=None, models=None, **options):
    """Advantages of groups of rewards; None is a reward that could not be given."""
    rloo, flat = trainer == "rloo", sum(rewards, [])
    if models is None:
        models = {"old": [[-1.0]] * len(flat), "ref": [[-1.0]] * len(flat)}
    world = World(models["old"], models["old"], models["ref"], None, [False] * len(flat), flat)
    options = {"beta": 0.0} | options
    config = make_config(trl.RLOOConfig if rloo else trl.GRPOConfig, len(flat), len(rewards[0]), **options)
    made = make_trainer(trl.RLOOTrainer if rloo else trl.GRPOTrainer, config, world)
    advantages = scored(made, world)["advantages"]
    assert advantages.dtype == torch.float64
    size = len(rewards[0])
    settings = {"trainer": trainer, "group_size": size}
    if rloo:
        settings |= {"normalize_advantages": config.normalize_advantages, "beta": config.beta}
        settings["reward_clip_range"] = config.reward_clip_range
    else:
        settings["scale_rewards"] = config.scale_rewards
    case = {"name": name, "rewards": rewards, "settings": settings}
    if config.beta != 0.0:
        case |= {"old_log_probs": models["old"], "ref_log_probs": models["ref"]}
    groups = torch.split(advantages, size)
    metrics = last_metrics(made, ("reward", "frac", "kl"))
    metrics = {key: value for key, value in metrics.items() if not key.startswith("rewards/")}
    return case | {"advantages": [group.tolist() for group in groups], "metrics": metrics}


# Rewards are exact in float32: TRL rounds what a reward function returns to it.
REWARD_TABLES = {
    "binary": [[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0]],
    "speedups": [[0.0, 0.25, 1.375, 2.75], [1.5, 1.625, 0.0, 6.5]],
    "one_group_equal": [[0.5, 0.5, 0.5, 0.5], [0.0, 1.0, -0.25, 2.0]],
    "all_equal": [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]],
    "pairs": [[1.0, 0.0], [0.25, 0.25], [-1.5, 2.0]],
    "eight": [[0.0, 0.0, 0.125, 0.5, 1.0, 1.0, 1.75, 3.0]],
    "nearly_equal": [[1.0, 1.0, 1.0, 1.0 + 2.0**-14], [0.0, 0.0, 0.0, 2.0**-10]],
    "missing": [[None, 0.0, 1.0, 0.5], [None, None, None, 2.0]],
}


def advantage_cases():
    for table, rewards in REWARD_TABLES.items():
        for scale in ("group", "batch", "none"):
            yield advantage_case(f"{table}_{scale}", rewards, scale_rewards=scale)
        yield advantage_case(f"{table}_rloo", rewards, trainer="rloo")
        yield advantage_case(f"{table}_rloo_normalized", rewards, trainer="rloo", normalize_advantages=True)
    speedups = REWARD_TABLES["speedups"]
    yield advantage_case("speedups_rloo_clipped", speedups, trainer="rloo", reward_clip_range=(0.125, 2.0))
    yield advantage_case("speedups_rloo_kl", speedups, trainer="rloo", beta=0.05, models=LOG_PROBS)


def main():
    torch.set_default_dtype(torch.float64)
    cases = list(loss_cases())
    check_that_all_branches_are_met(cases)
    versions = {m.__name__: m.__version__ for m in (trl, transformers, accelerate, torch)}
    with OUT.open("w") as out:
        # One case a line, so that a difference shows which cases changed.
        out.write('{"versions": ' + json.dumps(versions))
        for key, values in (("cases", cases), ("advantage_cases", list(advantage_cases()))):
            lines = ",\n".join(json.dumps(value, allow_nan=False) for value in values)
            out.write(f',\n"{key}": [\n{lines}\n]')
        out.write("}\n")


if __name__ == "__main__":
    main()
