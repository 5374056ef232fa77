/** Keeps the tenant in the address of each page, so that an address can be sent to somebody else. */

import { type ReactNode, useEffect, useLayoutEffect, useMemo } from 'react';
import { type BaseLocationHook, Router } from 'wouter';
import { navigate, usePathname, useSearch } from 'wouter/use-browser-location';
import { forgetTenant, setSession, useSession } from '../api/session.ts';
import { baseOf, listOf, pageIn, tenantIn } from '../lib/tenant-path.ts';

const BASE = new URL(document.baseURI).pathname.replace(/\/$/, '');

/** The parameter that had the tenant in links of earlier versions. */
const OLD_PARAMETER = 'tenant';

/** The tenant that the address names. */
export function useAddressedTenant(): string | undefined {
  const path = usePathname();
  const params = new URLSearchParams(useSearch());
  return params.get(OLD_PARAMETER) || tenantIn(path, BASE);
}

/** Shows the page of the address for this tenant, and adds the tenant to an address without one. */
export function InTenant(props: {
  readonly tenant: string | undefined;
  readonly children: ReactNode;
}) {
  const { tenant, children } = props;
  const base = baseOf(BASE, tenant);
  const hook = useMemo(() => pagesAt(base), [base]);
  const path = usePathname();
  const search = useSearch();
  // biome-ignore lint/correctness/useExhaustiveDependencies: looks again whenever the address has changed
  useLayoutEffect(() => {
    // The page may have led elsewhere since it was rendered.
    const { pathname, search: params, hash } = location;
    const wanted = `${base}${pageIn(pathname, BASE)}${withoutTenant(params)}`;
    if (wanted === pathname + params) return;
    navigate(wanted + hash, { replace: true, state: history.state });
  }, [base, path, search]);
  const session = useSession();
  // For addresses without a tenant, which are opened later.
  useEffect(() => {
    if (tenant !== undefined && session.tenant !== tenant) setSession({ ...session, tenant });
  }, [tenant, session]);
  return (
    <Router base={base} hook={hook}>
      {children}
    </Router>
  );
}

/** The location as if every address named the tenant: until it does, the page is shown already. */
function pagesAt(base: string) {
  return (): ReturnType<BaseLocationHook> => [`${base}${pageIn(usePathname(), BASE)}`, navigate];
}

function withoutTenant(search: string): string {
  const params = new URLSearchParams(search);
  if (!params.has(OLD_PARAMETER)) return search;
  params.delete(OLD_PARAMETER);
  return params.size === 0 ? '' : `?${params}`;
}

/** Removes the tenant from the address. @param page default: the one that is open */
export function leaveTenant(page?: string): void {
  const rest = page ?? pageIn(location.pathname, BASE) + withoutTenant(location.search);
  navigate(BASE + rest, { replace: true });
}

/** Asks for another tenant, in which the page stays open. */
export function switchTenant(): void {
  forgetTenant();
  leaveTenant();
}

/** The page that another tenant has as well: instead of one thing, the list of such things. */
export function leaveThing(): void {
  const page = pageIn(location.pathname, BASE);
  if (listOf(page) !== page) leaveTenant(listOf(page));
}
