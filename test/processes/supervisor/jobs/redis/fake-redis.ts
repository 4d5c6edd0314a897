/** Takes connections of a client of Redis, and gives each command an answer that a test chooses. */
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/** Returns the answer as Redis writes it, without the last line end. Connections count from 1. */
export type Answers = (name: string, connection: number) => string;

/** Returns its port. */
export async function fakeRedis(t: { after(undo: () => void): void }, answer: Answers): Promise<number> {
  let connections = 0;
  const server = createServer((socket) => {
    const connection = (connections += 1);
    socket.on('error', () => {}); // the client hears of its close
    let said = '';
    socket.on('data', (bytes) => {
      said += bytes.toString('latin1');
      for (let next = firstCommand(said); next !== null; next = firstCommand(said)) {
        said = next.rest;
        socket.write(`${answer(next.name, connection)}\r\n`);
      }
    });
    t.after(() => socket.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** A command is an array of strings with their lengths; null if it is not whole yet. */
function firstCommand(said: string): { name: string; rest: string } | null {
  const count = Number(/^\*(\d+)\r\n/.exec(said)?.[1] ?? 0);
  if (count === 0) return null;
  const words: string[] = [];
  let rest = said.slice(said.indexOf('\n') + 1);
  for (let i = 0; i < count; i += 1) {
    const length = Number(/^\$(\d+)\r\n/.exec(rest)?.[1] ?? NaN);
    const from = rest.indexOf('\n') + 1;
    if (Number.isNaN(length) || rest.length < from + length + 2) return null;
    words.push(rest.slice(from, from + length));
    rest = rest.slice(from + length + 2);
  }
  return { name: (words[0] as string).toUpperCase(), rest };
}
