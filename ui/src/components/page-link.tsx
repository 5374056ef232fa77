/** A link to another page if the key may open it; plain text otherwise. */

import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useMaySee } from '../api/engine.tsx';

export function PageLink(props: { readonly href: string; readonly children: ReactNode }) {
  const maySee = useMaySee();
  return maySee(props.href) ? <Link href={props.href}>{props.children}</Link> : props.children;
}
