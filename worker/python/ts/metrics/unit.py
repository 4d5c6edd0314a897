"""The same as `mms.metrics.unit`."""

from mms.metrics.unit import Units as Units
