/** Look-ups of host names in a real process that may be killed. */
import assert from 'node:assert/strict';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, connect, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { LookUp } from '../../../../supervisor/machine/look-up.js';

const PROGRAM = new URL('../../../../supervisor/machine/look-up-process.js', import.meta.url);

/** A LookUp that records its processes, the latest last. */
function newLookUp(t: TestContext): { lookUp: LookUp; processes: ChildProcess[] } {
  const processes: ChildProcess[] = [];
  const lookUp = new LookUp(() => {
    const child = fork(PROGRAM, { execArgv: [] });
    processes.push(child);
    return child;
  });
  t.after(() => lookUp.close());
  return { lookUp, processes };
}

/** An idle process does not keep the test alive, so a test that awaits its end must. */
function endOf(child: ChildProcess): Promise<unknown> {
  child.ref();
  return once(child, 'exit');
}

interface Told {
  readonly code: string | undefined;
  readonly message: string | undefined;
  readonly address: unknown;
}

function ask(lookUp: LookUp, name: string, options: { all?: boolean; family?: 4 | 6 } = {}): Promise<Told> {
  return new Promise((resolve) => {
    lookUp.lookup(name, options, (error, address) =>
      resolve({ code: error?.code, message: error?.message, address }),
    );
  });
}

test('net.connect connects to a name as with the look-up of Node', async (t) => {
  const { lookUp, processes } = newLookUp(t);
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  for (let round = 0; round < 2; round += 1) {
    const { port } = server.address() as AddressInfo;
    const socket = connect({ port, host: 'localhost', lookup: lookUp.lookup });
    await once(socket, 'connect');
    socket.destroy();
  }
  assert.equal(processes.length, 1, 'one process answers them all');
});

test('lookup returns one address or all, of the requested family', async (t) => {
  const { lookUp } = newLookUp(t);
  assert.equal((await ask(lookUp, 'localhost', { family: 4 })).address, '127.0.0.1');
  const all = await ask(lookUp, 'localhost', { family: 4, all: true });
  assert.deepEqual((all.address as object[])[0], { address: '127.0.0.1', family: 4 });
});

test('a name that cannot be resolved fails with the error of Node', async (t) => {
  const { lookUp } = newLookUp(t);
  const name = `${'x'.repeat(64)}.test`; // a label has at most 63 characters, so no name server gets a query
  const { code, message } = await ask(lookUp, name);
  assert.match(String(code), /^E/);
  assert.equal(message, `getaddrinfo ${code} ${name}`);
});

test('the death of the process fails its look-ups; the next one starts another process', async (t) => {
  const { lookUp, processes } = newLookUp(t);
  await ask(lookUp, 'localhost');
  processes[0]?.kill('SIGSTOP');
  const pending = ask(lookUp, 'localhost');
  processes[0]?.kill('SIGKILL');
  assert.equal((await pending).code, 'EAI_AGAIN');
  assert.equal((await ask(lookUp, 'localhost', { family: 4 })).address, '127.0.0.1');
  assert.equal(processes.length, 2);
});

test('if the process cannot be started, the look-up fails with the reason and does not throw', async () => {
  const lookUp = new LookUp(() => {
    throw Object.assign(new Error('spawn EAGAIN'), { code: 'EAGAIN' });
  });
  assert.equal((await ask(lookUp, 'localhost')).code, 'EAGAIN');
});

test('the process survives the signals of its group, and ends with the server', async (t) => {
  const { lookUp, processes } = newLookUp(t);
  await ask(lookUp, 'localhost');
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) processes[0]?.kill(signal);
  await ask(lookUp, 'localhost');
  assert.equal(processes.length, 1);
  const ended = endOf(processes[0] as ChildProcess);
  processes[0]?.disconnect();
  assert.deepEqual(await ended, [null, 'SIGKILL']);
});

test('close ends the process', async (t) => {
  const { lookUp, processes } = newLookUp(t);
  await ask(lookUp, 'localhost');
  const ended = endOf(processes[0] as ChildProcess);
  lookUp.close();
  assert.deepEqual(await ended, [null, 'SIGKILL']);
});
