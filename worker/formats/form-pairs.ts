/** Names and values of `application/x-www-form-urlencoded` text; values are decoded to bytes. */

/** Returns every pair in order. Broken percent escapes stay unchanged. */
export function formPairs(text: Buffer): [name: string, value: Buffer][] {
  const pairs = text.toString('latin1').split('&');
  return pairs.filter((pair) => pair !== '').map(readPair);
}

function readPair(pair: string): [name: string, value: Buffer] {
  const equals = pair.indexOf('=');
  const [name, value] = equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
  return [decoded(name).toString(), decoded(value)];
}

/** `text` has one character per byte. */
function decoded(text: string): Buffer {
  const bytes = text
    .replaceAll('+', ' ')
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}
