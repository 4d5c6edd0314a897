/**
 * Flags of Multi Model Server's and TorchServe's commands that are no options here: start scripts go on as they are. What
 * cannot be done is refused, what changes nothing is accepted.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { configError } from '../../../protocol/errors.js';

/** As commander parses them. */
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

/** Those that have no meaning here, by the names that commander gives them, and why; they are told in a warning each. */
const LEFT_ASIDE: Readonly<Record<string, readonly [flag: string, why: string]>> = {
  disableTokenAuth: ['--disable-token-auth', 'keys are given by --api-key and --management-key'],
  enableModelApi: [
    '--enable-model-api',
    'who may register is decided by the address and the key of the management API',
  ],
  pluginsPath: ['--plugins-path', 'there are no plugins'],
  workflowStore: ['--workflow-store', 'there are no workflows'],
};

/** The other flags, and what is to be said. `folder`: that of relative paths. @throws SERVE_CONFIG */
export function withoutMmsFlags(
  flags: Readonly<Record<string, unknown>>,
  folder: string,
): { values: Readonly<Record<string, unknown>>; warnings: string[] } {
  const { start: _start, foreground: _foreground, stop, logConfig, tsConfig, ...others } = flags;
  if (stop === true) throw configError(NO_STOP);
  const { ncs: _ncs, configSnapshots: _configSnapshots, ...known } = others; // none are written here
  const left = Object.entries(LEFT_ASIDE).filter(([name]) => known[name] !== undefined);
  const values = Object.fromEntries(Object.entries(known).filter(([name]) => !(name in LEFT_ASIDE)));
  return {
    values: tsConfig === undefined ? values : { mmsConfig: tsConfig, ...values },
    warnings: [
      ...(typeof logConfig === 'string' ? [logConfigText(logConfig, folder)] : []),
      ...left.map(([, [flag, why]]) => `${flag} is left aside: ${why}`),
    ],
  };
}

function logConfigText(path: string, folder: string): string {
  if (!existsSync(resolve(folder, path))) throw configError(`--log-config ${path}: no such file.`);
  return `--log-config ${path} is left aside: --log-level, --log-format and --log-location say what is logged, and where`;
}

const NO_STOP =
  '--stop: a server stays in the foreground of whoever started it, and no other one is known here. End it with Ctrl-C, or ' +
  'with SIGTERM: kill <pid>, systemctl stop, docker stop. It finishes its calls first.';

/** `--models a=a.mar b=b.mar`, as Multi Model Server took it, as a flag for each. Whatever may be an app is left as it is. */
export function withFlagForEachModel(args: readonly string[], folder: string): string[] {
  let isAmongModels = false;
  return args.flatMap((arg, i) => {
    const isValue = args[i - 1] === '--models';
    isAmongModels = isValue || (isAmongModels && isModel(arg, folder));
    return isAmongModels && !isValue ? ['--models', arg] : [arg];
  });
}

/** A plain word that names nothing in the folder of the start can be no app either. */
function isModel(arg: string, folder: string): boolean {
  return MODEL.test(arg) || (/^\w[\w-]*$/.test(arg) && !existsSync(resolve(folder, arg)));
}

/** No path of an app looks so. */
const MODEL = /^(?!-)(?:[\w.-]+=.+|.*\.(?:mar|model))$/;
