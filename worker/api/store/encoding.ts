/** Encodes values and decodes them. The encoders are loaded on first use; no message contains any part of a value. */
export type EncodingName = 'json' | 'msgpack';

export interface Encoding {
  /** @throws TypeError if the value cannot be encoded */
  encode(value: unknown): Buffer;
  /** @throws Error if the bytes have another encoding */
  decode(bytes: Buffer): unknown;
}

export async function loadEncoding(name: EncodingName): Promise<Encoding> {
  const codec = name === 'json' ? await jsonCodec() : await msgpackCodec();
  return {
    encode(value) {
      if (value === undefined || typeof value === 'function' || typeof value === 'symbol') {
        throw new TypeError(`A store holds data, not ${typeof value}; store null, or delete the key.`);
      }
      try {
        return codec.encode(value);
      } catch {
        // The encoder's own message would quote the value.
        throw new TypeError(
          `The value cannot be stored as ${name}: it holds a cycle, a getter that throws, a BigInt too large, or something that is not data (a promise, Map, Set, function, error).`,
        );
      }
    },
    decode(bytes) {
      try {
        return codec.decode(bytes);
      } catch {
        throw new Error(
          `The stored value is not ${name}; it was written with another encoding or by another program.`,
        );
      }
    },
  };
}

async function jsonCodec(): Promise<Encoding> {
  const { encodeJson } = await import('../../values/json-encoding.js');
  return { encode: encodeJson, decode: (bytes) => JSON.parse(bytes.toString('utf8')) as unknown };
}

async function msgpackCodec(): Promise<Encoding> {
  const { readMsgpack, writeMsgpack } = await import('../../formats/msgpack.js');
  return { encode: writeMsgpack, decode: readMsgpack };
}
