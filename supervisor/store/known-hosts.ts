/**
 * The hosts that models are downloaded from, by name: a name is looked up once for each connection, its addresses are
 * checked, and the connection goes to one of these. So no second answer can lead elsewhere.
 */
import type { LookupAddress, LookupOptions } from 'node:dns';
import { kindOfAddress } from './address-kind.js';

type Told = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

/** As `dns.lookup`. */
export type Lookup = (name: string, options: LookupOptions, told: Told) => void;

/** The addresses of a name are not to be connected to. The message says why, and begins with the name. */
export class AddressRefused extends Error {}

export class KnownHosts {
  /** Those that were found at public addresses and no others; each stands in an entry of the operator's. */
  readonly #public = new Set<string>();

  /** A look-up that ends in AddressRefused if one of the addresses must not be connected to. */
  checked(lookup: Lookup): Lookup {
    return (name, options, told) =>
      lookup(name, { ...options, all: true }, (error, found) => {
        if (error !== null) return told(error, []);
        const addresses = found as LookupAddress[];
        const problem = this.#problemWith(name, addresses);
        if (problem !== null) return told(new AddressRefused(`${name} ${problem}`), []);
        if (options.all === true) told(null, addresses);
        else told(null, addresses[0]?.address ?? '', addresses[0]?.family);
      });
  }

  /**
   * The operator has named the host, so that it may be in a private network. But a name that has left the world for such a
   * network, perhaps this machine, is in somebody else's hands.
   */
  #problemWith(name: string, addresses: readonly LookupAddress[]): string | null {
    for (const { address } of addresses) {
      const kind = kindOfAddress(address);
      if (kind === 'special')
        return `has the address ${address}, which no name may have; an entry of allowed_urls may be that address itself`;
      if (kind === 'private' && this.#public.has(name))
        return `had a public address before and has the private ${address} now; if that is meant, start the server again`;
    }
    if (addresses.every(({ address }) => kindOfAddress(address) === 'public')) this.#public.add(name);
    return null;
  }
}
