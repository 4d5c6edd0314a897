"""The same as `mms.metrics.dimension`."""

from mms.metrics.dimension import Dimension as Dimension
