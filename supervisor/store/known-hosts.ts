/**
 * Checks the addresses of hosts that models are downloaded from: a name is looked up once for each connection, its
 * addresses are checked, and the connection goes to one of them. So a second DNS answer cannot lead elsewhere.
 */
import type { LookupAddress } from 'node:dns';
import { BlockList, isIPv4, isIPv6, type LookupFunction } from 'node:net';

/**
 * Wraps a look-up so that it fails if an address must not be connected to; the message begins with the name and gives the
 * reason. `publicHosts`: hosts that had only public addresses so far; each is in an entry of `--allowed-urls`.
 */
export function checkedLookup(lookup: LookupFunction, publicHosts: Set<string>): LookupFunction {
  return (name, options, callback) =>
    lookup(name, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, []);
      const addresses = found as LookupAddress[];
      const problem = problemWith(name, addresses, publicHosts);
      if (problem !== null) return callback(new Error(`${name} ${problem}`), []);
      if (options.all === true) callback(null, addresses);
      else callback(null, addresses[0]?.address ?? '', addresses[0]?.family);
    });
}

/**
 * The operator has allowed the host, so its address may be private. But if a name changes from a public address to a
 * private one, perhaps of this machine, an attacker may control it.
 */
function problemWith(
  name: string,
  addresses: readonly LookupAddress[],
  publicHosts: Set<string>,
): string | null {
  const kinds = addresses.map(({ address }) => kindOfAddress(address));
  for (const [i, { address }] of addresses.entries()) {
    if (kinds[i] === 'special')
      return `resolves to ${address}, which a host name may not resolve to; if that is intended, put the address itself into allowed_urls`;
    if (kinds[i] === 'private' && publicHosts.has(name))
      return `had a public address before and now has the private address ${address}; if that is intended, restart the server`;
  }
  if (kinds.every((kind) => kind === 'public')) publicHosts.add(name);
  return null;
}

/**
 * `public`: the internet. `private`: this machine, or networks of its owner. `special`: all others, which never serve
 * models; one of them, 169.254.169.254, gives cloud machines their credentials.
 */
export type AddressKind = 'public' | 'private' | 'special';

/** `address` in the form that look-ups return. An IPv4 address inside an IPv6 address counts as the IPv4 address. */
export function kindOfAddress(address: string): AddressKind {
  const inner = translatedAddress(address);
  if (inner !== null) return kindOfAddress(inner);
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  if (SPECIAL.check(address, family)) return 'special';
  return PRIVATE.check(address, family) ? 'private' : 'public';
}

/** The IPv4 address that is translated to this IPv6 address (RFC 6052, for networks without IPv4); null if none is. */
function translatedAddress(address: string): string | null {
  const [, tail] = /^64:ff9b::([\da-f:.]*)$/i.exec(address) ?? [];
  if (tail === undefined || isIPv4(tail)) return tail ?? null;
  const [low = 0, high = 0] = tail
    .split(':')
    .map((group) => parseInt(group || '0', 16))
    .reverse();
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

/** From the registries of special-purpose addresses (RFC 6890). */
const PRIVATE = blockList([
  ['10.0.0.0', 8],
  ['100.64.0.0', 10], // shared address space of carriers; private networks of clouds use it too
  ['127.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15], // network benchmarks
  ['::1', 128],
  ['64:ff9b:1::', 48], // translation to IPv4 within a private network
  ['fc00::', 7],
  ['fec0::', 10], // predecessor of fc00::/7
]);

const SPECIAL = blockList([
  ['0.0.0.0', 8],
  ['168.63.129.16', 32], // services of Azure for its machines, as at link-local addresses
  ['169.254.0.0', 16],
  ['192.0.0.0', 24],
  ['192.88.99.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  ['::', 128],
  ['2001::', 32], // Teredo tunnels
  ['2002::', 16],
  ['fe80::', 10],
  ['fd00:ec2::', 32], // IPv6 address of the credentials of Amazon's machines
  ['ff00::', 8],
]);

function blockList(subnets: readonly (readonly [net: string, prefix: number])[]): BlockList {
  const list = new BlockList();
  for (const [net, prefix] of subnets) list.addSubnet(net, prefix, isIPv6(net) ? 'ipv6' : 'ipv4');
  return list;
}
