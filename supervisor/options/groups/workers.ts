/** Options of workers: number, devices, interpreter, environment, restarts. */
import { availableCores } from '../../machine/cores.js';
import { parseGpus, parseBudget, type Budget } from '../value-forms.js';
import { parseNamePattern } from '../secret-names.js';
import { NotAllowed, parseChoice, parsePositiveMs, parseWhole } from '../units.js';
import {
  DURATION,
  MINUTE,
  modelOption,
  operatorOption,
  serverOption,
  type SomeOptions,
} from '../option-spec.js';

export const WORKERS = {
  workers: operatorOption<number | null>({
    flag: '--workers',
    value: '<n>',
    help: 'Worker processes on a machine without GPUs; each loads the model.',
    defaultText: '1',
    default: null,
    parse: (raw) => parseWhole(raw, 1, 1024),
  }),
  gpus: operatorOption<string | null>({
    flag: '--gpus',
    value: '<which>',
    help: 'all, none, first:2 for the first two or as many as there are, or a list of indexes or ids as nvidia-smi prints them: 0,2 or GPU-uuid or MIG-uuid.',
    defaultText: 'all that nvidia-smi finds',
    default: null,
    parse: parseGpus,
  }),
  workersPerGpu: operatorOption<number | null>({
    flag: '--workers-per-gpu',
    value: '<n>',
    help: 'Worker processes on each GPU; each has its own copy of the model in GPU memory.',
    defaultText: '1',
    default: null,
    parse: (raw) => parseWhole(raw, 1, 64),
  }),
  minWorkers: operatorOption<number | null>({
    flag: '--min-workers',
    value: '<n>',
    help: 'Least workers of a model that scales itself: this, --max-workers or --idle-timeout is given instead of --workers. See docs/scaling.md.',
    defaultText: '1; 0 with --idle-timeout alone',
    default: null,
    parse: (raw) => parseWhole(raw, 0, 1024),
  }),
  maxWorkers: operatorOption<number | null>({
    flag: '--max-workers',
    value: '<n>',
    help: 'Most workers of such a model.',
    defaultText: 'as many as would start without it',
    default: null,
    parse: (raw) => parseWhole(raw, 1, 1024),
  }),
  idleTimeout: operatorOption<number | null>({
    flag: '--idle-timeout',
    value: DURATION,
    help: 'Time without need of a worker after which such a model ends it.',
    defaultText: '60s',
    default: null,
    parse: parsePositiveMs,
  }),
  targetWait: operatorOption<number>({
    flag: '--target-wait',
    value: DURATION,
    help: 'Wait of a call for a worker beyond which such a model starts another one.',
    defaultText: '100ms',
    default: 100,
    parse: parsePositiveMs,
  }),
  standby: operatorOption<number>({
    flag: '--standby',
    value: '<n>',
    help: 'Workers beyond the wanted ones that have loaded the model and wait: calls that a dying worker has not begun go to one at once. Each takes the memory of one more worker. See docs/scaling.md.',
    defaultText: '0',
    default: 0,
    parse: (raw) => parseWhole(raw, 0, 64),
  }),
  python: operatorOption<string | null>({
    flag: '--python',
    value: '<path>',
    help: 'Interpreter of apps in Python: a path, or a name in PATH. If not given: that of the active environment, of a .venv or venv beside the app or above it, else python3. See docs/python.md.',
    defaultText: 'found',
    default: null,
    parse: parseProgram,
  }),
  providers: operatorOption<string | null>({
    flag: '--providers',
    value: '<names>',
    help: 'Execution providers of onnxruntime for .onnx files, in order of preference: cuda,cpu. What is named is used, or the start fails. Without cpu in the list no part of a model may run there. Apps with code choose their own. See docs/onnx.md.',
    defaultText: 'cuda,cpu for a worker with a GPU, else cpu',
    default: null,
    parse: parseProviders,
  }),
  initTimeout: modelOption<number>({
    flag: '--init-timeout',
    value: DURATION,
    help: 'Longest start of a worker, from spawn to ready.',
    defaultText: '10m',
    default: 10 * MINUTE,
    parse: parsePositiveMs,
  }),
  withholdEnv: serverOption<RegExp | null>({
    flag: '--withhold-env',
    value: '<pattern>',
    help: "Regular expression; workers do not get environment variables whose whole name it matches; '' withholds none. The server's own keys and secrets never reach workers. Without an app, variables whose names look like secrets (docs/security.md) are withheld, and the start logs which.",
    defaultText: 'none; without an app, names that look like secrets',
    default: null,
    parse: parseNamePattern,
  }),
  restartLimit: modelOption<number>({
    flag: '--restart-limit',
    value: '<n>',
    help: 'Failed starts in a row (a worker that dies before it is ready, or idle before its first call) that are allowed. One more, and a model that was never ready is given up; one that was is failing: calls get 503, and its starts go on. With --watch the default is 0.',
    defaultText: '5',
    default: 5,
    parse: (raw) => parseWhole(raw, 0, 1_000_000),
  }),
  onCrashLoop: serverOption<'stay' | 'exit'>({
    flag: '--on-crash-loop',
    value: '<what>',
    help: 'When a model that was ready has no worker and each failed to start more often than --restart-limit: stay (go on trying, answer 503 meanwhile) or exit with code 3, where another process or machine may help, as on a lost GPU.',
    defaultText: 'stay',
    default: 'stay',
    parse: (raw) => parseChoice(raw, ['stay', 'exit']),
  }),
  spawnConcurrency: serverOption<number>({
    flag: '--spawn-concurrency',
    value: '<n>',
    help: 'Workers that may start at once over all devices; one at a time per GPU. One more may start for a model that lost its last ready worker.',
    defaultText: 'cores, at least 2, at most 8',
    default: Math.min(8, Math.max(2, availableCores())),
    parse: (raw) => parseWhole(raw, 1, 1024),
  }),
  spares: serverOption<number>({
    flag: '--spares',
    value: '<n>',
    help: 'Processes, for each program that workers run, that wait without an app: a worker that dies is replaced without waiting for Node or Python to start. Each takes some 13 MB.',
    defaultText: '1',
    default: 1,
    parse: (raw) => parseWhole(raw, 0, 64),
  }),
  memoryBudget: serverOption<Budget | null>({
    flag: '--memory-budget',
    value: '<size>',
    help: 'Memory that all workers together may use: a size, or a share (50%) of the limit of the cgroup, else of the machine. Linux only. A start that does not fit sends idle workers of models that scale themselves away, else its calls wait. See docs/scaling.md.',
    defaultText: 'no limit',
    default: null,
    parse: parseBudget,
  }),
  gpuMemoryBudget: serverOption<Budget | null>({
    flag: '--gpu-memory-budget',
    value: '<size>',
    help: 'The same for the memory of each GPU: a size, or a share of the card.',
    defaultText: 'no limit',
    default: null,
    parse: parseBudget,
  }),
} as const satisfies SomeOptions;

/** The path or the name of a program. @throws NotAllowed */
function parseProgram(raw: unknown): string {
  if (typeof raw !== 'string' || raw.trim() === '') throw new NotAllowed('the path or the name of a program');
  return raw.trim();
}

/** Names separated by commas; the worker compares them with those that its onnxruntime has. @throws NotAllowed */
function parseProviders(raw: unknown): string {
  const names = typeof raw === 'string' ? raw.split(',').map((name) => name.trim()) : [];
  if (
    names.length === 0 ||
    !names.every((name) => /^[a-z]\w*$/i.test(name)) ||
    new Set(names.map((name) => name.toLowerCase())).size < names.length
  )
    throw new NotAllowed('names of execution providers, separated by commas, such as cuda,cpu');
  return names.join(',');
}
