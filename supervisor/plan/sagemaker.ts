/**
 * SageMaker runs a container with the argument `serve`: where it puts the model, or the models that it loads over HTTP, and
 * the ports that it leaves to the container (docs/sagemaker.md).
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { configError } from '../../protocol/errors.js';
import type { OptionSource, ResolvedOptions, ServerOptions } from '../options/resolve.js';
import { OPTIONS } from '../options/table.js';

/** AWS's own containers read these as well: a number of workers, on GPUs or not, and the limit of a call in seconds. */
export const WORKERS = 'SAGEMAKER_MODEL_SERVER_WORKERS';
const TIMEOUT = 'SAGEMAKER_MODEL_SERVER_TIMEOUT';
const VARIABLES: Record<string, string> = { defaultWorkers: WORKERS, runTimeout: TIMEOUT };

const MULTI_MODEL = 'SAGEMAKER_MULTI_MODEL=true';

/**
 * `app`: the one that the operator has named. The options: what the operator has set, which takes precedence over `source`.
 * `hasWholeUrls`: models are loaded over HTTP, by the whole paths of their folders. @throws SERVE_CONFIG
 */
export function planSageMaker(
  app: string | null,
  { options, explicit }: ResolvedOptions,
  env: NodeJS.ProcessEnv,
): { app: string | null; source: OptionSource; hasWholeUrls: boolean } {
  const base = resolve(env['SAGEMAKER_BASE_DIR'] || '/opt/ml');
  const { [WORKERS]: workers, [TIMEOUT]: timeoutS } = env;
  const common = {
    port: explicit.has('port') ? options.port : 8080,
    runTimeout: timeoutS ? `${timeoutS}s` : undefined,
  };
  if (env['SAGEMAKER_MULTI_MODEL'] !== 'true') {
    const folder = join(base, 'model');
    if (app === null && !existsSync(folder)) throw configError(noModel(folder));
    const source = sourceOf({ ...common, defaultWorkers: workers || undefined });
    return { app: app ?? folder, source, hasWholeUrls: false };
  }
  if (app !== null)
    throw configError(`${MULTI_MODEL}: SageMaker says which models there are; leave out the app ${app}.`);
  const values = {
    ...common,
    host: '0.0.0.0',
    managementPort: common.port,
    managementInsecure: true,
    modelStore: storeIn(base),
    defaultWorkers: workers || 1,
    ping: 'always-200', // a model that is being loaded, or cannot be, is no reason to replace the container
  };
  return { app, source: sourceOf(values), hasWholeUrls: true };
}

function sourceOf(values: OptionSource['values']): OptionSource {
  return { values, where: (name) => VARIABLES[name] ?? `serve: ${name}` };
}

function noModel(folder: string): string {
  return `serve is SageMaker's argument, and there is no folder ${folder}. To serve an app, name it: banana-serve ./app.ts`;
}

/** The folder of models, which may be missing until there is one. */
function storeIn(base: string): string {
  const folder = join(base, 'models');
  try {
    mkdirSync(folder, { recursive: true });
  } catch (cause) {
    throw configError(`${MULTI_MODEL}: the folder ${folder} cannot be made: ${(cause as Error).message}.`);
  }
  return folder;
}

/** Warnings of second ports that another container of the same instance may have. */
export function strayPorts(options: ServerOptions, env: NodeJS.ProcessEnv): string[] {
  const range = env['SAGEMAKER_SAFE_PORT_RANGE'] ?? '';
  const [first = NaN, last = NaN] = range.split('-').map(Number);
  return (['managementPort', 'metricsPort'] as const)
    .filter((name) => {
      const port = options[name];
      return typeof port === 'number' && port !== options.port && (port < first || port > last);
    })
    .map((name) => `${OPTIONS[name].flag} ${options[name]} is not in SAGEMAKER_SAFE_PORT_RANGE ${range}`);
}
