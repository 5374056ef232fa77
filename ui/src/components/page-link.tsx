/** A link to another page of the dashboard, for who may see that page; for others, what it says. */

import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useMaySee } from '../api/engine.tsx';

export function PageLink(props: { readonly href: string; readonly children: ReactNode }) {
  const maySee = useMaySee();
  return maySee(props.href) ? <Link href={props.href}>{props.children}</Link> : props.children;
}
