"""The same as `mms.context`."""

from mms.context import Context as Context
from mms.context import RequestProcessor as RequestProcessor
