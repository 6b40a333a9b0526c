package dev.fieldmesh.app.screen

import android.content.ClipData
import android.content.ClipboardManager
import android.view.View
import android.widget.EditText
import android.widget.TextView
import android.widget.Toast
import dev.fieldmesh.app.R
import dev.fieldmesh.core.agent.FleetNode
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.app.AppState

/** What the Pair screen does and asks; the activity stands behind it. */
interface PairActions {
    val ownPin: Pin?
    val pairing: Pairing?

    /** The controller that this phone is an experimenter's of. */
    val controller: Pairing?

    /** Those that a code let this phone in to. */
    val nodes: List<FleetNode>

    /** Whether this phone has a camera. */
    val canScan: Boolean

    fun pair(with: Pairing)

    fun join(code: PairingCode)

    /** Asks which of [nodes] is with this phone. */
    fun choose()

    fun scan()

    /** Ends the pairing; [button] asks once more where that costs more than the pairing. */
    fun unpair(button: TextView)
}

/** Whom the app talks to: keys become known by a one-time code, or by hand, and nobody else is ever believed. */
class PairScreen(override val view: View, private val actions: PairActions) : Screen {
    private val context = view.context
    private val line: EditText = view.findViewById(R.id.line)
    private val error: TextView = view.findViewById(R.id.pair_error)
    private val entry: String? = actions.ownPin?.let { """{"name": "phone", "role": "app", "pin": "${it.hex}"}""" }

    init {
        text(R.id.own_key).text =
            actions.ownPin?.hex?.chunked(GROUP)?.joinToString(" ") ?: context.getString(R.string.unknown)
        text(R.id.copy).setOnClickListener { copy() }
        text(R.id.pair).setOnClickListener { pair() }
        text(R.id.unpair).apply { setOnClickListener { actions.unpair(this) } }
        text(R.id.scan).apply {
            setOnClickListener { actions.scan() }
            visibility = if (actions.canScan) View.VISIBLE else View.GONE
        }
        text(R.id.choose).setOnClickListener { actions.choose() }
        error.visibility = View.GONE
    }

    private fun text(id: Int): TextView = view.findViewById(id)

    private fun copy() {
        context.getSystemService(ClipboardManager::class.java).setPrimaryClip(
            ClipData.newPlainText(
                "key",
                entry ?: return,
            ),
        )
        Toast.makeText(context, R.string.pair_copied, Toast.LENGTH_SHORT).show()
    }

    private fun pair() = take(line.text.toString())

    /** Takes a code or a line, typed or scanned. */
    fun take(text: String) {
        val code = PairingCode.parse(text)
        val pairing = Pairing.parse(text)
        error.visibility = if (code == null && pairing == null) View.VISIBLE else View.GONE
        when {
            code != null -> actions.join(code)
            pairing != null -> actions.pair(pairing)
            else -> return error.setText(if (PairingCode.isMeant(text)) R.string.pair_mistyped else R.string.pair_bad)
        }
        line.text.clear()
    }

    override fun show(state: AppState) {
        val paired = actions.pairing
        text(R.id.paired).text =
            paired?.let { context.getString(R.string.pair_with, "${it.host}:${it.port}") }
                ?: context.getString(R.string.link_unpaired)
        val controller = actions.controller
        text(R.id.experimenter).text = controller?.let { context.getString(R.string.exp_is, "${it.host}:${it.port}") }
            ?: context.getString(R.string.exp_how)
        view.see(R.id.choose, actions.nodes.size > if (paired == null) 0 else 1)
        view.see(R.id.unpair, paired != null || controller != null || actions.nodes.isNotEmpty())
    }

    private companion object {
        const val GROUP = 8
    }
}
