"""The modules that handlers of TorchServe import: those of `mms`, and the base of most handlers."""

from __future__ import annotations

from banana_worker.stand_in import names_of_package, same_modules
from mms import MODULES as MMS_MODULES
from mms import __version__ as __version__

SAME = {
    **{name: f"mms.{name}" for name in MMS_MODULES},
    "metrics.metric_type_enum": "mms.metrics.caching_metric",
}

MODULES = (*SAME, "torch_handler.base_handler", "handler_utils.timer", "utils.util")

names_of_package("ts", (), MODULES)
same_modules("ts", SAME)
