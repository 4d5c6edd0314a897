/**
 * Checks the addresses of hosts that models are downloaded from: a name is looked up once for each connection, its
 * addresses are checked, and the connection goes to one of them. So a second DNS answer cannot lead elsewhere.
 */
import type { LookupAddress, LookupOptions } from 'node:dns';
import { kindOfAddress } from './address-kind.js';

type LookupCallback = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void;

/** As `dns.lookup`. */
export type Lookup = (name: string, options: LookupOptions, callback: LookupCallback) => void;

/** A host has an address that must not be connected to. The message begins with the name and gives the reason. */
export class AddressRefused extends Error {}

export class KnownHosts {
  /** Hosts that had only public addresses so far; each is in an entry of `--allowed-urls`. */
  readonly #public = new Set<string>();

  /** Wraps a look-up so that it fails with AddressRefused if an address must not be connected to. */
  checked(lookup: Lookup): Lookup {
    return (name, options, callback) =>
      lookup(name, { ...options, all: true }, (error, found) => {
        if (error !== null) return callback(error, []);
        const addresses = found as LookupAddress[];
        const problem = this.#problemWith(name, addresses);
        if (problem !== null) return callback(new AddressRefused(`${name} ${problem}`), []);
        if (options.all === true) callback(null, addresses);
        else callback(null, addresses[0]?.address ?? '', addresses[0]?.family);
      });
  }

  /**
   * The operator has allowed the host, so its address may be private. But if a name changes from a public address to a
   * private one, perhaps of this machine, an attacker may control it.
   */
  #problemWith(name: string, addresses: readonly LookupAddress[]): string | null {
    for (const { address } of addresses) {
      const kind = kindOfAddress(address);
      if (kind === 'special')
        return `resolves to ${address}, which a host name may not resolve to; if that is intended, put the address itself into allowed_urls`;
      if (kind === 'private' && this.#public.has(name))
        return `had a public address before and now has the private address ${address}; if that is intended, restart the server`;
    }
    if (addresses.every(({ address }) => kindOfAddress(address) === 'public')) this.#public.add(name);
    return null;
  }
}
