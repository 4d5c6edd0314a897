/** The state of the server in a word, for the header. */
import type { LiveServer } from '../../status/live-types.js';
import { plural } from '../parts/format.js';
import type { Tone } from '../parts/tone.js';
import type { Watched } from './alert.js';
import { alertsOf } from './alerts.js';

const TONES: Readonly<Record<LiveServer['state'], Tone>> = {
  starting: 'busy',
  ready: 'good',
  idle: 'good',
  unhealthy: 'bad',
  failing: 'bad',
  draining: 'warn',
};

/** The state of the server, as far as its alerts agree: with a model that has given up it is not well. */
export function serverState(watched: Watched): [Tone, string] {
  const { server, models } = watched;
  if (server === null) return ['busy', 'connecting'];
  if (server.state === 'draining') return ['warn', 'draining'];
  const alerts = alertsOf(watched);
  const [bad, warnings] = [alerts.filter(({ level }) => level === 'bad').length, alerts.length];
  const serves = models.some(({ state }) => state === 'ready');
  const word = server.state === 'starting' && serves ? 'ready' : server.state;
  if (bad > 0) return ['bad', serves ? `${plural(bad, 'problem')}` : `not ready, ${plural(bad, 'problem')}`];
  if (warnings > 0) return ['warn', `${word}, ${plural(warnings, 'warning')}`];
  const loading = models.filter(({ state }) => state === 'starting').length;
  if (loading > 0 && serves) return ['good', `${word}, ${loading} loading`];
  return [TONES[server.state], word];
}
