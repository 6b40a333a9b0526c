package dev.fieldmesh.app.screen

import android.text.SpannableString
import android.text.Spanned
import android.text.style.ForegroundColorSpan
import android.view.View
import android.widget.EditText
import android.widget.Switch
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.core.node.NodeState
import dev.fieldmesh.device.WifiLink

/** This phone as a node; the activity stands behind it. */
interface OwnNodeActions {
    /** Whether this app has the programs of a node. */
    val isBuilt: Boolean
    val isWanted: Boolean
    val isPaired: Boolean

    /** Whether the app is paired with no node, and may be with this one. */
    val mayFollow: Boolean

    /** Whether there is anything to share. */
    val hasSaid: Boolean
    val name: String
    val state: NodeState
    val link: WifiLink?

    /** Whether that Wi-Fi has no internet. */
    val isLocal: Boolean

    fun want(name: String)

    fun unwant()

    /** Pairs the app with this node. */
    fun follow()

    /** Ends the node's pairing with its controller, once [button] has asked again. */
    fun forget(button: TextView)

    /** Hands the newest of what the agent said to another app. */
    fun share()
}

/** The switch that makes this phone a node, and what has come of it. */
class OwnNodeCard(private val view: View, private val nowNs: () -> Long, private val node: OwnNodeActions) {
    private val context = view.context
    private val switch: Switch = view.findViewById(R.id.own)
    private val name: EditText = view.findViewById(R.id.own_name)
    private val follow: TextView = view.findViewById(R.id.own_follow)
    private val forget: TextView = view.findViewById(R.id.own_forget)
    private val share: TextView = view.findViewById(R.id.own_share)

    init {
        follow.setOnClickListener { node.follow() }
        forget.setOnClickListener { node.forget(forget) }
        share.setOnClickListener { node.share() }
        name.setText(node.name)
        switch.setOnClickListener { if (switch.isChecked) node.want(name.text.toString()) else node.unwant() }
    }

    fun show() {
        switch.isEnabled = node.isBuilt || node.isWanted // it runs on after an update to a build without
        switch.isChecked = node.isWanted
        name.visibility = seenIf(node.isBuilt && !node.isPaired && !node.isWanted)
        follow.visibility = seenIf(node.mayFollow)
        forget.visibility = seenIf(node.isPaired)
        share.visibility = seenIf(node.hasSaid)
        val lines = when {
            !node.isBuilt -> listOf(context.getString(R.string.own_absent))
            node.isWanted -> listOf(stateText(node.state)) + networkTexts() + context.getString(R.string.own_screen)
            else -> emptyList()
        }
        view.findViewById<TextView>(R.id.own_state).apply {
            text = SpannableString(lines.joinToString("\n\n")).apply {
                if (node.isWanted && node.state is NodeState.Failing) {
                    val red = ForegroundColorSpan(context.getColor(R.color.bad))
                    setSpan(red, 0, lines.first().length, Spanned.SPAN_EXCLUSIVE_EXCLUSIVE)
                }
            }
            visibility = seenIf(lines.isNotEmpty())
        }
    }

    private fun stateText(state: NodeState): String = when (state) {
        NodeState.Off -> context.getString(R.string.own_off)
        NodeState.Starting -> context.getString(R.string.own_starting)
        NodeState.Unpaired -> context.getString(R.string.own_unpaired, node.name)
        is NodeState.Running ->
            context.getString(R.string.own_running, node.name, (nowNs() - state.sinceNs) / MINUTE_NS)
        is NodeState.Failing -> failingText(state)
    }

    private fun failingText(state: NodeState.Failing): String {
        val signal = state.signal
        val said = state.said.ifEmpty { context.getString(R.string.own_silent) }
        return when {
            signal != null -> context.getString(R.string.own_killed, SIGNALS[signal] ?: "$signal", said)
            state.status != null -> context.getString(R.string.own_exited, state.status, said)
            else -> context.getString(R.string.own_failing, said)
        }
    }

    private fun seenIf(it: Boolean) = if (it) View.VISIBLE else View.GONE

    private fun networkTexts(): List<String> {
        val link = node.link ?: return listOf(context.getString(R.string.own_no_wifi))
        val address = link.address ?: context.getString(R.string.unknown)
        return listOfNotNull(
            context.getString(R.string.own_wifi, link.interfaceName, address),
            if (node.isLocal) context.getString(R.string.own_local) else null,
        )
    }

    private companion object {
        const val MINUTE_NS = 60_000_000_000L

        /** Those by which Android ends a program, or a program itself. */
        val SIGNALS = mapOf(6 to "SIGABRT", 9 to "SIGKILL", 11 to "SIGSEGV", 15 to "SIGTERM", 31 to "SIGSYS")
    }
}
