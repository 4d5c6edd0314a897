"""Values in a bucket of S3, one object each. S3 has no lifetimes of minutes, so an object carries the time at which
it expires, and a reader checks it."""

from __future__ import annotations

import time
from typing import Any, Dict, Mapping, Optional

from .backend import Backend, expiry_of, load_package
from .config import S3Config

EXPIRY = "expires-at-ms"
_MISSING = ("404", "NoSuchKey", "NotFound")


class S3Backend(Backend):
    def __init__(self, config: S3Config) -> None:
        boto3 = load_package("boto3")
        self._bucket = config.bucket
        self._client = boto3.client(
            "s3",
            aws_access_key_id=config.aws_access_key_id,
            aws_secret_access_key=config.aws_secret_access_key,
        )

    def get(self, key: str) -> Optional[bytes]:
        found = self._ask(self._client.get_object, key)
        if found is None or _is_expired(found["Metadata"]):
            return None
        return found["Body"].read()

    def set(self, key: str, data: bytes, ttl: Optional[float]) -> None:
        metadata: Dict[str, str] = {} if ttl is None else {EXPIRY: str(round(expiry_of(ttl) * 1000))}
        self._client.put_object(Bucket=self._bucket, Key=key, Body=data, Metadata=metadata)

    def delete(self, key: str) -> bool:
        existed = self.has(key)
        self._client.delete_object(Bucket=self._bucket, Key=key)
        return existed

    def has(self, key: str) -> bool:
        found = self._ask(self._client.head_object, key)
        return found is not None and not _is_expired(found["Metadata"])

    def _ask(self, operation: Any, key: str) -> Any:
        """The response for an object; None if there is none."""
        try:
            return operation(Bucket=self._bucket, Key=key)
        except Exception as error:
            response = getattr(error, "response", None)
            code = response.get("Error", {}).get("Code") if isinstance(response, Mapping) else None
            if code in _MISSING:
                return None
            raise


def _is_expired(metadata: Mapping[str, str]) -> bool:
    """Objects of other programs, Potassium's among them, never expire."""
    try:
        return float(metadata.get(EXPIRY, "inf")) <= time.time() * 1000
    except ValueError:
        return False
