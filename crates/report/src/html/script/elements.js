  const byId = (id) => document.getElementById(id);

  function element(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined) node.setAttribute(name, value);
    }
    // text nodes only: nothing of a dataset or a model is ever markup
    for (const child of children) node.append(child);
    return node;
  }

  const fold = (title, ...children) => element("details", {}, element("summary", {}, title), ...children);

  // a page that was opened as a file may have no clipboard, or may not use it
  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copySelected(text);
    }
  }

  function copySelected(text) {
    const box = element("textarea", { class: "unseen", readonly: "", "aria-label": "what is copied" });
    box.value = text;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    return done;
  }

  function copyButton(what, text) {
    const button = element("button", { class: "copy", type: "button", "aria-live": "polite", title: text }, "copy " + what);
    button.addEventListener("click", async () => {
      button.textContent = await copy(text) ? "copied" : "this browser does not copy";
      button.focus({ preventScroll: true });
      setTimeout(() => { button.textContent = "copy " + what; }, 1500);
    });
    return button;
  }
