package dev.fieldmesh.app.screen

import android.view.LayoutInflater
import android.view.View
import android.view.ViewGroup
import android.widget.TextView

/** Rows of one layout, one for each of a list. A row stays as long as what it shows: a screen reader may be on it. */
internal class Cards<T>(private val group: ViewGroup, private val layout: Int) {
    private var shown: List<T> = emptyList()

    fun fill(list: List<T>, show: (View, T) -> Unit) {
        while (group.childCount > list.size) group.removeViewAt(group.childCount - 1)
        while (group.childCount < list.size) LayoutInflater.from(group.context).inflate(layout, group, true)
        list.forEachIndexed { i, item -> if (shown.getOrNull(i) != item) show(group.getChildAt(i), item) }
        shown = list
    }
}

internal fun View.see(id: Int, it: Boolean) {
    findViewById<View>(id).visibility = if (it) View.VISIBLE else View.GONE
}

/** Shows a text, or no line at all. */
internal fun View.tell(id: Int, words: String?) {
    val line = findViewById<TextView>(id)
    if (line.text.toString() != words.orEmpty()) line.text = words.orEmpty() // a screen reader says it only once
    see(id, words != null)
}

/** A button that is not to be touched now looks so. */
internal fun View.allow(id: Int, it: Boolean) = findViewById<View>(id).run {
    isEnabled = it
    alpha = if (it) 1f else FAINT
}

internal const val FAINT = 0.4f
