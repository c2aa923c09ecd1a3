// The search shows excerpts from the text of a page, without the theme's contents and buttons around it.
{
  const { htmlToText } = Search;

  Search.htmlToText = (html, anchor) => {
    const article = new DOMParser().parseFromString(html, "text/html").querySelector(".bd-article");
    return htmlToText(article ? `<div role="main">${article.outerHTML}</div>` : html, anchor);
  };
}
