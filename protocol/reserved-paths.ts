/** The paths that the front answers itself for every app. A Potassium app may not declare any of them. */

/** Paths of health probes. */
export const HEALTH_PATHS: readonly string[] = ['/healthcheck', '/livez', '/readyz'];

export const STATUS_PATH = '/status';

/** Potassium's status, under its new path and its old one. */
export const POTASSIUM_STATUS_PATHS: readonly string[] = ['/_k/status', '/__status__'];

/** Prefix of all paths of Potassium's server. */
export const POTASSIUM_PREFIX = '/_k';

export const WARM_UP_PATH = `${POTASSIUM_PREFIX}/warmup`;

/** A background call's page is `${JOBS_PATH}/<id>`. */
export const JOBS_PATH = `${POTASSIUM_PREFIX}/jobs`;

/** The live data of the page at `/`. */
export const LIVE_PATH = `${POTASSIUM_PREFIX}/live`;

/** A file of that page is `${PAGE_FILES_PATH}/<name>`. */
export const PAGE_FILES_PATH = `${POTASSIUM_PREFIX}/page`;

export const RESERVED_PATHS: readonly string[] = [
  ...HEALTH_PATHS,
  STATUS_PATH,
  ...POTASSIUM_STATUS_PATHS,
  POTASSIUM_PREFIX,
];

/** Prefixes of the readiness of each model, and of Potassium's server. */
export const RESERVED_PREFIXES: readonly string[] = ['/readyz/', `${POTASSIUM_PREFIX}/`];

export function isReservedPath(path: string): boolean {
  return RESERVED_PATHS.includes(path) || RESERVED_PREFIXES.some((prefix) => path.startsWith(prefix));
}
