/**
 * Flags of Multi Model Server's and TorchServe's commands that are not options here, so that start scripts work unchanged.
 * Flags that cannot be honoured are refused; flags without effect are accepted.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { configError } from '../../../protocol/errors.js';

/** In commander's syntax. */
export const MMS_FLAGS: readonly string[] = [
  '--start',
  '--stop',
  '--foreground',
  '--log-config <path>',
  '--ts-config <path>',
  '--ncs',
  '--no-config-snapshots',
  '--disable-token-auth',
  '--enable-model-api',
  '--plugins-path <path>',
  '--workflow-store <path>',
];

/** Flags without effect, by commander's names, with the reason; each causes a warning. */
const LEFT_ASIDE: Readonly<Record<string, readonly [flag: string, why: string]>> = {
  disableTokenAuth: ['--disable-token-auth', 'keys are given by --api-key and --management-key'],
  enableModelApi: [
    '--enable-model-api',
    'the address and the key of the management API decide who may register models',
  ],
  pluginsPath: ['--plugins-path', 'there are no plugins'],
  workflowStore: ['--workflow-store', 'there are no workflows'],
};

/** Returns the remaining flags, and warnings. `folder`: base of relative paths. @throws SERVE_CONFIG */
export function withoutMmsFlags(
  flags: Readonly<Record<string, unknown>>,
  folder: string,
): { values: Readonly<Record<string, unknown>>; warnings: string[] } {
  const { start: _start, foreground: _foreground, stop, logConfig, tsConfig, ...others } = flags;
  if (stop === true) throw configError(NO_STOP);
  const { ncs: _ncs, configSnapshots: _configSnapshots, ...known } = others; // this server writes no snapshots
  const left = Object.entries(LEFT_ASIDE).filter(([name]) => known[name] !== undefined);
  const values = Object.fromEntries(Object.entries(known).filter(([name]) => !(name in LEFT_ASIDE)));
  return {
    values: tsConfig === undefined ? values : { mmsConfig: tsConfig, ...values },
    warnings: [
      ...(typeof logConfig === 'string' ? [logConfigText(logConfig, folder)] : []),
      ...left.map(([, [flag, why]]) => `${flag} is ignored: ${why}`),
    ],
  };
}

function logConfigText(path: string, folder: string): string {
  if (!existsSync(resolve(folder, path))) throw configError(`--log-config ${path}: no such file.`);
  return `--log-config ${path} is ignored: use --log-level, --log-format and --log-location`;
}

const NO_STOP =
  '--stop: no command stops a running server, because it runs in the foreground. Press Ctrl-C there, or send it ' +
  'SIGTERM: kill <pid>, systemctl stop, docker stop. It finishes its calls first.';

/** Turns `--models a=a.mar b=b.mar` (Multi Model Server's form) into a flag per model; a path that can be an app stays. */
export function withFlagForEachModel(args: readonly string[], folder: string): string[] {
  let isAmongModels = false;
  return args.flatMap((arg, i) => {
    const isValue = args[i - 1] === '--models';
    isAmongModels = isValue || (isAmongModels && isModel(arg, folder));
    return isAmongModels && !isValue ? ['--models', arg] : [arg];
  });
}

/** Refuses `--models a.ts b.ts`: the second file would be the app. @throws SERVE_CONFIG */
export function refuseSecondFile(args: readonly string[]): void {
  const at = args.indexOf('--models');
  const files = args.slice(at + 1, at + 3).filter((arg) => FILE.test(arg) && !MODEL.test(arg));
  if (at === -1 || files.length < 2) return;
  const end = args.findIndex((arg, i) => i > at && !FILE.test(arg));
  const all = args.slice(at + 1, end === -1 ? undefined : end);
  throw configError(
    `--models ${all.join(' ')}: separate models by commas: --models ${all.join(',')}. An app goes before the flags.`,
  );
}

const FILE = /^(?!-).*\.\w+$/;

/** Whether `arg` is a model: it looks like one, or it is a plain word and no file of that name exists in `folder`. */
function isModel(arg: string, folder: string): boolean {
  return MODEL.test(arg) || (/^\w[\w-]*$/.test(arg) && !existsSync(resolve(folder, arg)));
}

/** Never matches the path of an app. */
const MODEL = /^(?!-)(?:[\w.-]+=.+|.*\.(?:mar|model))$/;
