/** One thing that a person has to know before all else. */
import type { LiveDeath } from '../../status/live-types.js';
import type { History } from '../live/history.js';

export interface Alert {
  /** Stays the same while the alert does. */
  readonly id: string;
  /** `bad`: calls are not answered. `warn`: it needs a look. */
  readonly level: 'bad' | 'warn';
  /** Does not change with time: it is read out when it appears. */
  readonly title: string;
  readonly text: string;
  /** Empty if there is nothing to do. */
  readonly todo: string;
  /** The worker's death that it is about; null if it is about none. */
  readonly death: LiveDeath | null;
  /** Whether the last words of the dead worker are shown at once: nothing else says why it died. */
  readonly opensDeath: boolean;
}

/** A warning without anything to do, to begin with. */
export const WARNING = { level: 'warn', todo: '', death: null, opensDeath: false } as const;

/** Everything from which alerts follow. */
export type Watched = Pick<History, 'at' | 'server' | 'models' | 'deaths'>;
