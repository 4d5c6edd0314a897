import type { SendAhead } from '../dispatch/send-ahead.js';
import type { ApiKeys } from '../http/call/api-keys.js';
import type { Dialects } from '../http/dialects/index.js';
import type { Devices } from '../machine/devices.js';
import type { ManagementPlan } from '../options/management.js';
import type { MetricsPlan } from '../options/metrics.js';
import type { ResolvedOptions } from '../options/resolve.js';
import type { TlsPlan } from '../options/tls.js';
import type { ModelStore } from '../store/model-store.js';
import type { FirstModel } from './served-models.js';

/** Everything that a server is made from, checked already. */
export interface ServerPlan {
  readonly models: readonly FirstModel[];
  /** Where the management API and `--models` find theirs. */
  readonly store: ModelStore;
  /** There is no app but a store: the server speaks and listens like Multi Model Server. */
  readonly isMmsMode: boolean;
  readonly resolved: ResolvedOptions;
  readonly keys: ApiKeys;
  readonly managementKeys: ApiKeys;
  /** Null: there is no management API. */
  readonly management: ManagementPlan | null;
  /** Null: nobody asks for metrics, and nothing is counted. */
  readonly metrics: MetricsPlan | null;
  /** Null: no listener speaks TLS. */
  readonly tls: TlsPlan | null;
  readonly devices: Devices;
  /** Folder of relative paths. */
  readonly cwd: string;
  /** Another rule than `dispatch/send-ahead.ts`, to measure it. */
  readonly sendAhead: SendAhead | undefined;
  /** Others than those of `http/dialects/index.ts`, to test one. */
  readonly dialects: Dialects | undefined;
  /** Said in the log at the start. */
  readonly warnings: readonly string[];
}
