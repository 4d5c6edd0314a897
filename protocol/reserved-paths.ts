/** The paths that the front answers itself, whatever the app: it routes them, and a Potassium app may declare none of them. */

/** Probes ask these. */
export const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthcheck', '/livez', '/readyz']);

/** Below it, each model has its own. */
const READY_PREFIX = '/readyz/';

export const STATUS_PATH = '/status';

/** Potassium's own status, under its new name and its old one. */
export const POTASSIUM_STATUS_PATHS: readonly string[] = ['/_k/status', '/__status__'];

/** Everything below belongs to Potassium's server. */
export const POTASSIUM_PREFIX = '/_k';

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
