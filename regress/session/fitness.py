"""What a machine lacks for measuring on a device, and what to do about it: for `doctor`, and beside the results of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from regress.model import Check

TORCH_AGAIN = "pip install --force-reinstall torch"

Facts = Mapping[str, Any]
"""What a process says of itself: interpreter, frameworks, device."""


def device_checks(facts: Facts) -> Iterator[Check]:
    """Whether there is a device, and whether its state can be read."""
    if facts.get("scripted"):
        yield Check("device", "ok", 'scripted ("device" in the configuration): times are simulated, not measured')
    elif "no_device" in facts:
        why = str(facts["no_device"])
        yield Check(
            "CUDA device", "warn", f"{why}; CUDA cases are skipped, CPU cases are measured", without_device(why)
        )
    elif "gpu_uuid" not in facts:  # only the suite's own torch can tell what it is
        yield Check("device", "ok", "an AMD device, timed by torch's events")
    else:
        driver = f", driver {facts['driver']}" if "driver" in facts else ""
        cuda = f", CUDA {facts['cuda']}" if "cuda" in facts else ""
        yield Check("CUDA device", "ok", f"{facts['gpu']} ({facts['gpu_uuid']}){cuda}{driver}")
    if "cuda" in facts and "driver" not in facts:  # the one by the driver itself, the other by NVML
        yield Check(
            "NVML",
            "warn",
            "not available; other processes on the device, its temperature and throttling go unnoticed",
            "install the libnvidia-ml of the driver (in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
        )


def without_device(why: str) -> str:
    """What to do if there is no device, for that reason."""
    if "CUDA_VISIBLE_DEVICES" in why:
        return "set CUDA_VISIBLE_DEVICES to one that nvidia-smi -L lists, or unset it"
    if "CUDA_ERROR" in why:
        return "nvidia-smi: it says whether driver and kernel module match; a reboot loads the installed ones"
    return "install the NVIDIA driver, or run on a machine with a GPU"


def torch_checks(facts: Facts) -> Iterator[Check]:
    """Whether torch can use the device of this machine. `torch_built` is "cuda 13.0", "hip 6.4" or, for the CPU only, empty."""
    if "torch" not in facts:
        return
    version = facts["torch"]
    if "torch_built" not in facts:
        yield Check("torch", "warn", f"{version}, but it cannot be imported", TORCH_AGAIN)
        return
    kind, _, built = str(facts["torch_built"]).partition(" ")
    driver = str(facts.get("cuda", ""))
    if not kind:
        what = f"{version} is built for the CPU only: its CUDA cases fail"
        yield Check("torch", "warn", what, TORCH_AGAIN)
    # Within a major version a driver runs what is built for a newer one.
    elif kind == "cuda" and driver and int(built.split(".")[0]) > int(driver.split(".")[0]):
        what = f"{version} is built for CUDA {built}, but the driver supports only CUDA {driver}: its CUDA cases fail"
        yield Check("torch", "warn", what, "update the NVIDIA driver, or install a torch for an older CUDA")
    else:
        yield Check("torch", "ok", f"{version}, built for {'ROCm' if kind == 'hip' else 'CUDA'} {built}")


def complaints(facts: Facts, with_torch: bool) -> list[str]:
    """What a machine with a device lacks for measuring on it, each with what to do; with or without torch."""
    if "no_device" in facts or facts.get("scripted"):
        return []
    checks = [*device_checks(facts), *(torch_checks(facts) if with_torch else ())]
    return [f"{check.name}: {check.found}; fix: {check.fix}" for check in checks if check.state != "ok"]


def lost(recorded: Facts, facts: Facts, loaded: Collection[str]) -> tuple[str, str, str]:
    """What the machine was recorded with that a process did not have, why, and what to do; empty where nothing is lost.
    `loaded` are the frameworks of the process: a benchmark that takes what they offer would go on with another series' values.
    """
    if recorded.get("gpu") and "no_device" in facts:
        why = str(facts["no_device"])
        return f"a device ({recorded['gpu']})", why, without_device(why)
    built = recorded.get("torch_built")
    if built and facts.get("torch_built") == "" and "torch" in loaded:
        why = f"torch {facts.get('torch')} is built for the CPU only"
        return f"a torch for the device ({built})", why, TORCH_AGAIN
    return "", "", ""
