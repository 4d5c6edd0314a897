/** Workers and GPUs: what each worker sees of a machine whose `nvidia-smi` is a script. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { editedApp } from '../helpers/edited-app.js';
import { refusalOf } from '../helpers/refusals.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { eventually, fixture, runCommand, startServer } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const CARDS = ['a', 'b', 'c'].map((letter) => `GPU-${letter.repeat(8)}-0000-0000-0000-${letter.repeat(12)}`);
const SLICES = ['MIG-11111111-1111-1111-1111-111111111111', 'MIG-22222222-2222-2222-2222-222222222222'];

const THREE_CARDS = CARDS.map((uuid, i) => `GPU ${i}: NVIDIA A100-SXM4-40GB (UUID: ${uuid})`).join('\n');
const SLICED = `GPU 0: NVIDIA A100 (UUID: ${CARDS[0]})
  MIG 3g.20gb     Device  0: (UUID: ${SLICES[0]})
  MIG 3g.20gb     Device  1: (UUID: ${SLICES[1]})
GPU 1: NVIDIA A100 (UUID: ${CARDS[1]})`;

interface Machine {
  /** Shell of the fake `nvidia-smi`; null: there is none. */
  readonly nvidiaSmi: string | null;
  readonly env?: Readonly<Record<string, string>>;
}

function printing(list: string): Machine {
  return {
    nvidiaSmi: `echo asked >> "\${ASKED:-/dev/null}"\n[ "$*" = "-L" ] || exit 6\ncat <<'END'\n${list}\nEND\n`,
  };
}

/** Nothing of the machine that runs the tests shows: neither its cards nor a mask. */
function environment(t: TestContext, { nvidiaSmi, env = {} }: Machine): Record<string, string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'banana-gpus-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const hidden = { CUDA_VISIBLE_DEVICES: undefined, HIP_VISIBLE_DEVICES: undefined };
  if (nvidiaSmi === null) return { PATH: folder, ...hidden, ...env };
  writeFileSync(join(folder, 'nvidia-smi'), `#!/bin/sh\n${nvidiaSmi}`);
  chmodSync(join(folder, 'nvidia-smi'), 0o755);
  return { PATH: `${folder}${delimiter}${process.env['PATH'] ?? ''}`, ...hidden, ...env };
}

test('a signal ends a start that waits for an nvidia-smi that hangs', LIMIT, async (t) => {
  const asked = join(mkdtempSync(join(tmpdir(), 'banana-gpus-')), 'asked');
  t.after(() => rmSync(dirname(asked), { recursive: true }));
  const env = environment(t, { nvidiaSmi: `: > '${asked}'\nexec sleep 1000\n` });
  const command = runCommand([fixture('echoes.mjs'), '--port', '0'], { t, env });
  await eventually(
    () => existsSync(asked),
    60_000,
    () => command.stderr(),
  );
  const signalledAtMs = performance.now();
  command.process.kill('SIGTERM');
  assert.deepEqual(await command.ended, { code: 0, signal: null });
  const tookMs = performance.now() - signalledAtMs;
  assert.ok(tookMs < 9000, `${tookMs} ms, and the question's limit is 10 s`);
  assert.equal(command.stderr(), 'banana-serve: stopped before it had started.\n');
});

/** Index, `ctx.worker.gpu`, CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER, HIP_VISIBLE_DEVICES. */
type Seen = readonly [
  index: number,
  gpu: string | null,
  cuda: string | null,
  order: string | null,
  hip: string | null,
];

const PCI = 'PCI_BUS_ID';
const onGpus = (...ids: string[]): Seen[] => ids.map((id, index) => [index, id, id, PCI, id]);
const onCpu = (index: number, mask: string | null): Seen => [index, null, mask, null, mask];

const cards = printing(THREE_CARDS);
const sliced = printing(SLICED);
const none: Machine = { nvidiaSmi: null };
/** Test runs of `Devices` hold the choice; here it comes from a machine and arrives in workers. */
const PLACED: readonly (readonly [
  what: string,
  machine: Machine,
  args: string,
  seen: readonly Seen[],
  health: boolean,
  line: string,
])[] = [
  [
    'chosen cards, in their order, with two workers each',
    cards,
    '--gpus 2,0 --workers-per-gpu 2',
    onGpus('2', '2', '0', '0'),
    true,
    'with 4 workers on 2 GPUs (2, 0) on ',
  ],
  [
    'a slice by its id, and a whole card by its index',
    sliced,
    `--gpus ${SLICES[1]},2`,
    onGpus(SLICES[1] ?? '', '1'),
    true,
    `with 2 workers on 2 GPUs (${SLICES[1]}, 1) on `,
  ],
  [
    '--gpus none: cards are hidden',
    cards,
    '--gpus none --workers 2',
    [onCpu(0, ''), onCpu(1, '')],
    false,
    'with 2 workers on the CPU ',
  ],
  [
    'no nvidia-smi: one worker on the CPU, nothing hidden',
    none,
    '',
    [onCpu(0, null)],
    false,
    'with 1 worker on the CPU ',
  ],
  [
    "no nvidia-smi, ROCm's mask and a card within it",
    { ...none, env: { HIP_VISIBLE_DEVICES: '4,6' } },
    '--gpus 0',
    onGpus('4'),
    true,
    'with 1 worker on 1 GPU (4) on ',
  ],
];

withEachRuntime(({ language, app }) => {
  describe('each worker sees its own device', { timeout: 300_000, concurrency: 2 }, () => {
    for (const [what, machine, args, seen, health, line] of PLACED) {
      // The front alone chooses devices; app-context.test.ts has a worker in each language on none.
      if (language !== 'TypeScript' && machine !== sliced) continue;
      test(what, async (t) => {
        const { env: cues, notes } = makeCues(t);
        const env = { ...environment(t, machine), ASKED: `${cues['CUES']}/notes` };
        const given = args === '' ? [] : args.split(' ');
        const server = await startServer(app('tells-device'), {
          t,
          env,
          args: given,
        });
        assert.ok(server.stderr().includes(line), server.stderr());
        const { model } = await server.until(({ model }) =>
          model.workers.every(({ state }) => state === 'idle'),
        );
        const devices = seen.map(([, gpu]) => (gpu === null ? 'cpu' : `gpu ${gpu}`));
        assert.deepEqual(
          model.workers.map(({ device }) => device),
          devices,
        );
        const { gpu } = (await (await fetch(`${server.url}/healthcheck`)).json()) as { gpu: boolean };
        assert.equal(gpu, health);
        for (let i = 0; i < 2; i += 1) await fetch(`${server.url}/healthcheck`);
        const { threads } = (await ask(server, {})).json<{ threads: number }>();
        assert.ok(threads >= 1 && threads <= Math.max(1, availableParallelism() / seen.length));
        await server.stop();
        type Printed = [number, string | null, number, string | null, string | null, string | null];
        const printed = server
          .stdout()
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as Printed);
        const told = printed
          .sort(([a], [b]) => a - b)
          .map(([index, id, own, ...masks]) => {
            assert.equal(own, threads, 'cores divided by workers, the same for all');
            return [index, id, ...masks];
          });
        assert.deepEqual(told, seen);
        const isAsked = machine.nvidiaSmi !== null && !args.includes('--gpus none');
        assert.deepEqual(notes(), isAsked ? ['asked'] : [], 'nvidia-smi is asked once, never on a request');
      });
    }
  });
});

/** The tests of `Devices` and of the options have the others. */
const REFUSED: readonly (readonly [
  what: string,
  machine: Machine,
  flags: Readonly<Record<string, string>>,
  says: RegExp,
])[] = [
  [
    '--gpus 0 where nvidia-smi lists none',
    printing('No devices were found'),
    { gpus: '0' },
    /--gpus 0: no GPU was found: nvidia-smi lists none\. Use --gpus none/,
  ],
  [
    "an index beyond ROCm's mask",
    { ...none, env: { HIP_VISIBLE_DEVICES: '4' } },
    { gpus: '1' },
    /\(HIP_VISIBLE_DEVICES=4 was inherited\)/,
  ],
];

describe('refused before anything starts, with a cure', LIMIT, () => {
  for (const [what, machine, flags, says] of REFUSED)
    test(what, async (t) => {
      const env = environment(t, machine);
      assert.match(await refusalOf({ app: fixture('tells-device.mjs'), flags, env }), says);
    });
});

test('an nvidia-smi that fails is a warning in its own words, and the CPU is used', LIMIT, async (t) => {
  const env = environment(t, { nvidiaSmi: 'echo "NVIDIA-SMI has failed: no driver"; exit 9' });
  const server = await startServer(fixture('tells-device.mjs'), { t, env });
  await server.untilPrinted(
    /WARN: GPU discovery: nvidia-smi failed \(exit code 9\): NVIDIA-SMI has failed: no driver; continuing without/,
  );
  assert.match(server.stderr(), /1 worker on the CPU/);
  await server.stop();
});

test(
  'a config.properties shares the workers of a model out over the GPUs that it counts',
  LIMIT,
  async (t) => {
    const seen = `export const handle = (data, context) => data && data.map(() => context.systemProperties.gpuId);`;
    const { folder } = editedApp(t, {
      'config.properties': `inference_address=http://127.0.0.1:0
management_address=http://127.0.0.1:0
model_store=models
load_models=first.mjs
default_workers_per_model=2
number_of_gpu=2`,
      'models/first.mjs': seen,
      'models/later.mjs': seen,
    });
    const server = await startServer(null, {
      t,
      cwd: folder,
      env: environment(t, cards),
      isAddressGiven: true,
    });
    const gpusOf = async (name: string): Promise<string[]> => {
      const { models } = await server.until(
        (status) =>
          status.models.find((model) => model.name === name)?.workers.filter(({ state }) => state === 'idle')
            .length === 2,
      );
      const workers = models.find((model) => model.name === name)?.workers ?? [];
      return workers.map(({ device }) => device).sort();
    };
    assert.deepEqual(await gpusOf('first'), ['gpu 0', 'gpu 1']);
    const management = /the management API is on (\S+)/.exec(server.stderr())?.[1] ?? '';
    const registered = await fetch(`${management}/models?url=later.mjs&synchronous=true`, { method: 'POST' });
    assert.equal(registered.status, 200, await registered.text());
    assert.deepEqual(await gpusOf('later'), ['gpu 0', 'gpu 1']);
    await server.stop();
  },
);
