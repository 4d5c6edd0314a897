/** Options of the management API. */
import { parseHost, parsePort } from '../address.js';
import { type KeyDigest, parseKeys } from '../api-key.js';
import { parseDurationMs, parseSwitch } from '../units.js';
import { DURATION, MINUTE, serverOption, type SomeOptions } from '../option-spec.js';

export const MANAGEMENT = {
  managementPort: serverOption<number | string | null>({
    flag: '--management-port',
    value: '<port>',
    help: "TCP port of the management API, 0 for a free one, or the path of a unix socket (anything with a /). The server's own port serves both on one port.",
    defaultText: 'off; with --model-store or --models 8081',
    default: null,
    parse: parsePort,
  }),
  managementHost: serverOption<string>({
    flag: '--management-host',
    value: '<address>',
    help: 'Address of the management API. By default only this machine, because anyone who reaches it can run code; any other address needs a key.',
    defaultText: '127.0.0.1',
    default: '127.0.0.1',
    parse: parseHost,
  }),
  managementKey: serverOption<readonly KeyDigest[] | null>({
    flag: '--management-key',
    value: '<key>',
    help: 'Key of the management API, instead of those of --api-key; several may be valid at once, separated by commas. Prefer the environment or a file.',
    defaultText: 'that of --api-key',
    default: null,
    secret: true,
    parse: parseKeys,
  }),
  managementInsecure: serverOption<boolean>({
    flag: '--management-insecure',
    value: null,
    help: 'Allows a management API without a key on an address that other machines reach. Anyone who reaches it can run code here.',
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  unregisterTimeout: serverOption<number>({
    flag: '--unregister-timeout',
    value: DURATION,
    help: "Longest time that an unregistration waits for the model's running calls and workers; then it answers 408 while they continue. 0: it does not wait.",
    defaultText: '2m',
    default: 2 * MINUTE,
    parse: parseDurationMs,
  }),
} as const satisfies SomeOptions;
