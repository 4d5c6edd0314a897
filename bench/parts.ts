/** Several pieces of bytes in one message: how many they are, then each behind its length, in numbers of 4 bytes. */

export function joinParts(parts: readonly Buffer[]): Buffer {
  return Buffer.concat([numberOf(parts.length), ...parts.flatMap((part) => [numberOf(part.length), part])]);
}

/** The pieces of the message that `read` begins with; null if a part of it has not come yet. */
export function partsIn(read: Buffer): Buffer[] | null {
  if (read.length < 4) return null;
  const parts: Buffer[] = [];
  let at = 4;
  for (let left = read.readUInt32LE(0); left > 0; left -= 1) {
    if (read.length < at + 4) return null;
    const endAt = at + 4 + read.readUInt32LE(at);
    if (read.length < endAt) return null;
    parts.push(read.subarray(at + 4, endAt));
    at = endAt;
  }
  return parts;
}

function numberOf(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
