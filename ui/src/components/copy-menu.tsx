/** The menu *Copy as*: what the page shows, as a link, Markdown, a command or a request. */

import { useState } from 'react';
import { useRouter } from 'wouter';
import { ENGINE_URL, useEngine } from '../api/engine.tsx';
import { type Copied, type CopyForm, formsOf } from '../lib/copy-as.ts';
import { TextToCopy } from './copy.tsx';
import { Dialog } from './dialog.tsx';
import { Menu } from './menu.tsx';
import { useToast } from './toasts.tsx';

/** @param props.tenantId of the thing, which the view of all tenants has no other way to know */
export function CopyMenu(props: { readonly copied: Copied; readonly tenantId?: string }) {
  const { tenant, who } = useEngine();
  const { base } = useRouter();
  const tell = useToast();
  const [byHand, setByHand] = useState<CopyForm>();
  const forms = formsOf(props.copied, {
    engine: ENGINE_URL,
    dashboard: location.origin + base,
    tenant: props.tenantId ?? tenant,
    needsKey: !who.is_insecure,
  });
  const copy = async (form: CopyForm) => {
    try {
      await navigator.clipboard.writeText(form.text);
      tell(`Copied: ${form.label}`);
    } catch {
      // Browsers deny the clipboard on plain HTTP, and users may deny it elsewhere.
      setByHand(form);
    }
  };
  return (
    <>
      <Menu
        label="Copy as"
        items={forms.map((form) => ({ label: form.label, onChoose: () => void copy(form) }))}
      />
      {byHand && (
        <Dialog title={`Copy as: ${byHand.label}`} onClose={() => setByHand(undefined)}>
          <TextToCopy text={byHand.text} onCopied={() => setByHand(undefined)} />
        </Dialog>
      )}
    </>
  );
}
