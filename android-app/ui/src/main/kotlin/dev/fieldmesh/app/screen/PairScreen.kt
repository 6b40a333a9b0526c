package dev.fieldmesh.app.screen

import android.content.ClipData
import android.content.ClipboardManager
import android.view.View
import android.widget.EditText
import android.widget.Switch
import android.widget.TextView
import android.widget.Toast
import dev.fieldmesh.app.R
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.app.AppState

/** What the Pair screen does and asks; the activity stands behind it. */
interface PairActions {
    val ownPin: Pin?
    val pairing: Pairing?
    var spokenCues: Boolean
    var gpsdServer: Boolean

    fun pair(with: Pairing)

    fun unpair()
}

/** Whom the app talks to: both keys are shown to each other by hand, and nobody else is ever believed. */
class PairScreen(override val view: View, private val actions: PairActions) : Screen {
    private val context = view.context
    private val line: EditText = view.findViewById(R.id.line)
    private val error: TextView = view.findViewById(R.id.pair_error)
    private val entry: String? = actions.ownPin?.let { """{"name": "phone", "role": "app", "pin": "${it.hex}"}""" }

    init {
        text(R.id.own_key).text = actions.ownPin?.hex?.chunked(GROUP)?.joinToString(" ") ?: context.getString(R.string.unknown)
        text(R.id.copy).setOnClickListener { copy() }
        text(R.id.pair).setOnClickListener { pair() }
        text(R.id.unpair).setOnClickListener { actions.unpair() }
        view.findViewById<Switch>(R.id.speech).apply {
            isChecked = actions.spokenCues
            setOnCheckedChangeListener { _, on -> actions.spokenCues = on }
        }
        view.findViewById<Switch>(R.id.gpsd).apply {
            isChecked = actions.gpsdServer
            setOnCheckedChangeListener { _, on -> actions.gpsdServer = on }
        }
        error.visibility = View.GONE
    }

    private fun text(id: Int): TextView = view.findViewById(id)

    private fun copy() {
        context.getSystemService(ClipboardManager::class.java).setPrimaryClip(ClipData.newPlainText("key", entry ?: return))
        Toast.makeText(context, R.string.pair_copied, Toast.LENGTH_SHORT).show()
    }

    private fun pair() {
        val pairing = Pairing.parse(line.text.toString())
        error.visibility = if (pairing == null) View.VISIBLE else View.GONE
        if (pairing == null) {
            error.setText(R.string.pair_bad)
            return
        }
        line.text.clear()
        actions.pair(pairing)
    }

    override fun show(state: AppState) {
        val paired = actions.pairing
        text(R.id.paired).text = paired?.let { context.getString(R.string.pair_with, "${it.host}:${it.port}") } ?: context.getString(R.string.link_unpaired)
        text(R.id.unpair).visibility = if (paired == null) View.GONE else View.VISIBLE
    }

    private companion object {
        const val GROUP = 8
    }
}
