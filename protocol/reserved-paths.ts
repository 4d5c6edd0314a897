/** The paths that the front answers itself for every app. A Potassium app may not declare any of them. */

/** Paths of health probes. */
export const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthcheck', '/livez', '/readyz']);

/** Prefix of the readiness path of each model. */
const READY_PREFIX = '/readyz/';

export const STATUS_PATH = '/status';

/** Potassium's status, under its new path and its old one. */
export const POTASSIUM_STATUS_PATHS: readonly string[] = ['/_k/status', '/__status__'];

/** Prefix of all paths of Potassium's server. */
export const POTASSIUM_PREFIX = '/_k';

/** A background call's page is `${JOBS_PATH}/<id>`. */
export const JOBS_PATH = `${POTASSIUM_PREFIX}/jobs`;

/** The live data of the page at `/`. */
export const LIVE_PATH = `${POTASSIUM_PREFIX}/live`;

/** A file of that page is `${PAGE_FILES_PATH}/<name>`. */
export const PAGE_FILES_PATH = `${POTASSIUM_PREFIX}/page`;

export function isReservedPath(path: string): boolean {
  return (
    HEALTH_PATHS.has(path) ||
    path.startsWith(READY_PREFIX) ||
    path === STATUS_PATH ||
    POTASSIUM_STATUS_PATHS.includes(path) ||
    path === POTASSIUM_PREFIX ||
    path.startsWith(`${POTASSIUM_PREFIX}/`)
  );
}
