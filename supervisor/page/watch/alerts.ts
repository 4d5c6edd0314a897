/**
 * Says what a person has to know first: models that answer nothing, then what is on the way there, each with what to do.
 * A model that wants no workers is no alert, and neither is one that is still being loaded.
 */
import { WARNING, type Alert, type Watched } from './alert.js';
import { modelAlerts } from './model-alerts.js';

/** The worst first. */
export function alertsOf(watched: Watched): Alert[] {
  const { server, models } = watched;
  const all = [
    ...(server?.state === 'draining' ? [DRAINING] : []),
    ...models.flatMap((model) => modelAlerts(model, watched)),
  ];
  return [...all.filter(({ level }) => level === 'bad'), ...all.filter(({ level }) => level === 'warn')];
}

const DRAINING: Alert = {
  ...WARNING,
  id: 'draining',
  title: 'The server is ending',
  text: 'It finishes the calls that it has, and refuses new ones with 503.',
};
