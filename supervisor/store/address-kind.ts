/** Classifies IP addresses for downloads. Pure. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';

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
