/** The tenant in the addresses of pages: `/ui/t/acme/instances`. The view of all tenants has none. */

const MARK = '/t/';

/** The tenant that the path names. @param base the path of the dashboard, without a slash at its end */
export function tenantIn(path: string, base: string): string | undefined {
  const rest = restOf(path, base);
  if (!rest.startsWith(MARK)) return undefined;
  const [name = ''] = rest.slice(MARK.length).split('/', 1);
  return decoded(name) || undefined;
}

/** The path below the dashboard, as its pages know it. */
export function pageIn(path: string, base: string): string {
  const rest = restOf(path, base);
  if (tenantIn(path, base) === undefined) return rest || '/';
  const end = rest.indexOf('/', MARK.length);
  return end < 0 ? '/' : rest.slice(end);
}

/** The base path of the pages of a tenant. @param tenant undefined: of all tenants */
export function baseOf(base: string, tenant: string | undefined): string {
  return tenant === undefined ? base : `${base}${MARK}${encodeURIComponent(tenant)}`;
}

function restOf(path: string, base: string): string {
  return path.startsWith(base) ? path.slice(base.length) : path;
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return '';
  }
}

const THING = /^(\/(?:instances|sequences|releases|schedules))\/[0-9a-f-]{36}(?:\/|$)/;

/** The list that a page of one thing belongs to; any other page itself. */
export function listOf(page: string): string {
  return THING.exec(page)?.[1] ?? page;
}
