/** Calls of programs that have the app as a function: their input is one value, and so is the answer, or each item of a stream. */
import type { ValueFormat } from '../../protocol/values/value-format.js';
import type { DialectFormat, Exchange } from './body-format.js';
import { PLAIN_HEAD, Reply, assertNoError, valueOf, type AnyIterator } from './reply.js';

export function programExchange({ read, write }: ValueFormat): Exchange {
  const written = (value: unknown, name: string): Buffer => write(value, name, 'SERVE_OUTPUT_INVALID');
  return {
    isOfProgram: true,
    read: (body) => read(body).value,
    write(reply) {
      const { head, body } = reply;
      assertNoError(reply);
      if (body.kind === 'stream') {
        const iterator = encoded(body.iterator, (item) => withLength(written(item, 'item')));
        return new Reply(PLAIN_HEAD, { kind: 'stream', iterator });
      }
      const bytes = written(valueOf(body, head.contentType), 'output');
      return new Reply(PLAIN_HEAD, { kind: 'bytes', bytes });
    },
  };
}

/** The format of these calls, which no request over HTTP can choose. */
export function programFormat(exchange: DialectFormat['exchange']): DialectFormat {
  return {
    itemRefusal: 'A custom service of Multi Model Server takes bytes of HTTP, not values of a program.',
    exchange,
  };
}

function encoded(iterator: AnyIterator, encode: (item: unknown) => Buffer): AsyncIterator<unknown> {
  return {
    async next() {
      const step = await iterator.next();
      if (step.done === true) return step;
      try {
        return { done: false, value: encode(step.value) };
      } catch (error) {
        await iterator.return?.(); // the stream ends here, though the app has not failed
        throw error;
      }
    },
    async return() {
      await iterator.return?.();
      return { done: true, value: undefined };
    },
  };
}

/** Each item stands behind its length, because the wire cuts a stream anywhere. */
function withLength(bytes: Buffer): Buffer {
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32LE(bytes.length, 0);
  return Buffer.concat([length, bytes]);
}
