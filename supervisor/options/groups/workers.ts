/** How many workers there are and where, what runs them, and what follows when one cannot start. */
import { availableCores } from '../../machine/cores.js';
import { parseProgram } from '../program.js';
import { parseGpus } from '../gpu-list.js';
import { parseNamePattern } from '../name-pattern.js';
import { parseChoice, parsePositiveMs, parseWhole } from '../units.js';
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
    help: 'Worker processes on a machine without GPUs. One: a model is loaded once until you ask for more.',
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
    help: 'Worker processes on each GPU. One: every worker holds its own copy of the model in GPU memory.',
    defaultText: '1',
    default: null,
    parse: (raw) => parseWhole(raw, 1, 64),
  }),
  python: operatorOption<string | null>({
    flag: '--python',
    value: '<path>',
    help: 'Interpreter of apps in Python: a path, or a name to be looked for in PATH. Left out: that of the active environment, of a .venv or venv beside the app or above it, else python3. See docs/python.md.',
    defaultText: 'found',
    default: null,
    parse: parseProgram,
  }),
  initTimeout: modelOption<number>({
    flag: '--init-timeout',
    value: DURATION,
    help: 'Longest start of a worker, from spawn to ready. Large models take minutes to load.',
    defaultText: '10m',
    default: 10 * MINUTE,
    parse: parsePositiveMs,
  }),
  withholdEnv: serverOption<RegExp | null>({
    flag: '--withhold-env',
    value: '<pattern>',
    help: "Variables of the environment that workers do not get: those whose whole name this regular expression matches; '' for none. The server's own keys and secrets never reach them. Without an app, models are other people's: secrets by their names (docs/security.md) are withheld, and the start says which.",
    defaultText: 'none; without an app, secrets by their names',
    default: null,
    parse: parseNamePattern,
  }),
  restartLimit: modelOption<number>({
    flag: '--restart-limit',
    value: '<n>',
    help: 'Failed starts in a row (a worker that dies before it is ready, or idle before its first call) that are tried again; after that it is not started any more. With --watch 0, unless given: the next change is the next try.',
    defaultText: '5',
    default: 5,
    parse: (raw) => parseWhole(raw, 0, 1_000_000),
  }),
  onCrashLoop: serverOption<'stay' | 'exit'>({
    flag: '--on-crash-loop',
    value: '<what>',
    help: 'When no worker can be restarted any more: stay (answer 503, keep the logs) or exit with code 3.',
    defaultText: 'stay',
    default: 'stay',
    parse: (raw) => parseChoice(raw, ['stay', 'exit']),
  }),
  spawnConcurrency: serverOption<number>({
    flag: '--spawn-concurrency',
    value: '<n>',
    help: 'Workers that may start at once over all devices; one at a time per GPU, where the peak is above steady state.',
    defaultText: 'cores, at least 2, at most 8',
    default: Math.min(8, Math.max(2, availableCores())),
    parse: (raw) => parseWhole(raw, 1, 1024),
  }),
} as const satisfies SomeOptions;
