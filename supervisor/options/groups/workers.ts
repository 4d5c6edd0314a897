/** Options of workers: number, devices, interpreter, environment, restarts. */
import { availableCores } from '../../machine/cores.js';
import {
  POSITIVE_DURATION,
  choice,
  modelOption,
  operatorOption,
  serverOption,
  whole,
  type SomeOptions,
} from '../option-spec.js';
import { parseNamePattern } from '../secret-names.js';
import { NotAllowed, listOf, parseText } from '../units.js';
import { parseBudget, parseGpus } from '../value-forms.js';

export const WORKERS = {
  workers: operatorOption({
    ...whole(1, 1024),
    unset: '1',
    help: 'Worker processes on a machine without GPUs; each loads the model.',
  }),
  gpus: operatorOption({
    value: '<which>',
    parse: parseGpus,
    unset: 'all that nvidia-smi finds',
    help: 'all, none, first:2 for the first two or as many as there are, or a list of indexes or ids as nvidia-smi prints them: 0,2 or GPU-uuid or MIG-uuid.',
  }),
  workersPerGpu: operatorOption({
    ...whole(1, 64),
    unset: '1',
    help: 'Worker processes on each GPU; each has its own copy of the model in GPU memory.',
  }),
  minWorkers: operatorOption({
    ...whole(0, 1024),
    unset: '1; 0 with --idle-timeout alone',
    help: 'Least workers of a model that scales itself: this, --max-workers or --idle-timeout is given instead of --workers. See docs/scaling.md.',
  }),
  maxWorkers: operatorOption({
    ...whole(1, 1024),
    unset: 'as many as would start without it',
    help: 'Most workers of such a model.',
  }),
  idleTimeout: operatorOption({
    ...POSITIVE_DURATION,
    unset: '60s',
    help: 'Time without need of a worker after which such a model ends it.',
  }),
  targetWait: operatorOption({
    ...POSITIVE_DURATION,
    default: '100ms',
    help: 'Wait of a call for a worker beyond which such a model starts another one.',
  }),
  standby: operatorOption({
    ...whole(0, 64),
    default: '0',
    help: 'Workers beyond the wanted ones that have loaded the model and wait: calls that a dying worker has not begun go to one at once. Each takes the memory of one more worker. See docs/scaling.md.',
  }),
  python: operatorOption({
    value: '<path>',
    parse: (raw) => parseText(raw, 'the path or the name of a program').trim(),
    unset: 'found',
    help: 'Interpreter of apps in Python: a path, or a name in PATH. If not given: that of the active environment, of a .venv or venv beside the app or above it, else python3. See docs/python.md.',
  }),
  providers: operatorOption({
    value: '<names>',
    parse: parseProviders,
    unset: 'cuda,cpu for a worker with a GPU, else cpu',
    help: 'Execution providers of onnxruntime for .onnx files, in order of preference: cuda,cpu. What is named is used, or the start fails. Without cpu in the list no part of a model may run there. Apps with code choose their own. See docs/onnx.md.',
  }),
  initTimeout: modelOption({
    ...POSITIVE_DURATION,
    default: '10m',
    help: 'Longest start of a worker, from spawn to ready.',
  }),
  withholdEnv: serverOption({
    value: '<pattern>',
    parse: parseNamePattern,
    unset: 'none; without an app, names that look like secrets',
    help: "Regular expression; workers do not get environment variables whose whole name it matches; '' withholds none. The server's own keys and secrets never reach workers. Without an app, variables whose names look like secrets (docs/security.md) are withheld, and the start logs which.",
  }),
  restartLimit: modelOption({
    ...whole(0, 1_000_000),
    default: '5',
    help: 'Failed starts in a row (a worker that dies before it is ready, or idle before its first call) that are allowed. One more, and a model that was never ready is given up; one that was is failing: calls get 503, and its starts go on. With --watch the default is 0.',
  }),
  onCrashLoop: serverOption({
    ...choice('<what>', ['stay', 'exit']),
    default: 'stay',
    help: 'When a model that was ready has no worker and each failed to start more often than --restart-limit: stay (go on trying, answer 503 meanwhile) or exit with code 3, where another process or machine may help, as on a lost GPU.',
  }),
  spawnConcurrency: serverOption({
    ...whole(1, 1024),
    unset: 'cores, at least 2, at most 8',
    otherwise: Math.min(8, Math.max(2, availableCores())),
    help: 'Workers that may start at once over all devices; one at a time per GPU. One more may start for a model that lost its last ready worker.',
  }),
  spares: serverOption({
    ...whole(0, 64),
    default: '1',
    help: 'Processes, for each program that workers run, that wait without an app: a worker that dies is replaced without waiting for Node or Python to start. Each takes some 13 MB.',
  }),
  memoryBudget: serverOption({
    value: '<size>',
    parse: parseBudget,
    unset: 'no limit',
    help: 'Memory that all workers together may use: a size, or a share (50%) of the limit of the cgroup, else of the machine. Linux only. A start that does not fit sends idle workers of models that scale themselves away, else its calls wait. See docs/scaling.md.',
  }),
  gpuMemoryBudget: serverOption({
    value: '<size>',
    parse: parseBudget,
    unset: 'no limit',
    help: 'The same for the memory of each GPU: a size, or a share of the card.',
  }),
} as const satisfies SomeOptions;

/** Names separated by commas; the worker compares them with those that its onnxruntime has. @throws NotAllowed */
function parseProviders(raw: unknown): string {
  const names = typeof raw === 'string' ? listOf(raw) : [];
  if (
    names.length === 0 ||
    !names.every((name) => /^[a-z]\w*$/i.test(name)) ||
    new Set(names.map((name) => name.toLowerCase())).size < names.length
  )
    throw new NotAllowed('names of execution providers, separated by commas, such as cuda,cpu');
  return names.join(',');
}
